"""The layer classes in a file with their operators, recognised by their base classes; the file is parsed, not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from .layers.names import operator_named

#: The beginnings of the full names of the frameworks' layer classes.
_HOMES = ("torch.nn.", "keras.layers.", "keras.Layer", "keras.Model", "tensorflow.keras.layers.", "flax.linen.",
          "flax.nnx.", "equinox.nn.", "equinox.Module", "transformers.")  # fmt: skip

#: The name of a normalisation class: it ends in an operator, perhaps followed by a number of dimensions.
_PLAIN = re.compile(r"(layer|rms|batch|group|instance)_?norm(ali[sz]ation)?(_?\d+(_?d)?)?$", re.I)

#: The class names in a KernelBench-style file, where the file's name says what they do.
_OF_THE_FILE = ("Model", "ModelNew")


def layers_in(body: Sequence[ast.stmt], file: str) -> dict[str, str]:
    """
    The layer classes that statements define, each with its operator, in order.

    The operator comes from the name of the class or of one of its bases, or in a KernelBench-style file from the file's
    name. A class whose name does not say which operator it is, such as a block with a LayerNorm inside, is left out.
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
    """The names that imports bind, each with the full name it stands for."""
    for one in body:
        if isinstance(one, ast.Import):
            for alias in one.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(one, ast.ImportFrom) and one.module and not one.level:
            yield from ((alias.asname or alias.name, f"{one.module}.{alias.name}") for alias in one.names)


def _full_name(value: ast.expr, imported: Mapping[str, str]) -> str:
    """The full name of a base class, with its imports resolved; empty if the expression is not a name."""
    parts = []
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name):
        return ""
    return ".".join([imported.get(value.id, value.id), *reversed(parts)])
