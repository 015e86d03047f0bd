"""The classes of layers in a file, and their operators, told by what they derive from: it is read, and not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from .layers.names import operator_named

#: What the full name of a framework's class of layers begins with.
_HOMES = ("torch.nn.", "keras.layers.", "keras.Layer", "keras.Model", "tensorflow.keras.layers.", "flax.linen.",
          "flax.nnx.", "equinox.nn.", "equinox.Module", "transformers.")  # fmt: skip

#: How the class of a normalisation is called: its operator at the end, and maybe how many dimensions it takes.
_PLAIN = re.compile(r"(layer|rms|batch|group|instance)_?norm(ali[sz]ation)?(_?\d+(_?d)?)?$", re.I)

#: The classes of a file in the manner of KernelBench, which is named after what they do.
_OF_THE_FILE = ("Model", "ModelNew")


def layers_in(body: Sequence[ast.stmt], file: str) -> dict[str, str]:
    """
    The classes of layers that statements define, each with its operator, in their order.

    A class is told by its own name, by that of a class which it derives from, or in a file in the manner of KernelBench
    by the file's. One that does not say plainly what it is, such as a block with a LayerNorm in it, is not among them.
    """
    imported = dict(_imported(body))
    derived: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for one in body:
        if not isinstance(one, ast.ClassDef):
            continue
        bases = [_full_name(base, imported) for base in one.bases]
        ancestors = [above for base in bases for above in derived.get(base, [base])]
        if not any(above.startswith(_HOMES) for above in ancestors):
            continue
        derived[one.name] = [one.name, *ancestors]
        names = [name.rpartition(".")[2] for name in derived[one.name]]
        if one.name in _OF_THE_FILE:
            names.append(re.sub(r"^\d+_", "", PurePath(file).stem))
        operator = operator_named(name for name in names if _PLAIN.search(name))
        if operator is not None and not one.name.startswith("_"):
            found[one.name] = operator
    return found


def _imported(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The names that imports bind, each with the full name of what it stands for."""
    for one in body:
        if isinstance(one, ast.Import):
            for alias in one.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(one, ast.ImportFrom) and one.module and not one.level:
            yield from ((alias.asname or alias.name, f"{one.module}.{alias.name}") for alias in one.names)


def _full_name(value: ast.expr, imported: Mapping[str, str]) -> str:
    """The name of a class that another derives from, with what its first part was imported as; empty for none."""
    parts = []
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name):
        return ""
    return ".".join([imported.get(value.id, value.id), *reversed(parts)])
