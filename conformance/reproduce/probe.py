"""A probe: the same calls as in the script, made in a process of their own, to see what each of them returns."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ...adapters.dtypes import DTYPES
from .spelling import CannotWrite

#: Most seconds that the process of a script may take.
_SECONDS = 300

#: Runs the text of a Python program; returns its standard error if it fails, and None if it ends well.
Runner = Callable[[str], "str | None"]


@attrs.frozen(eq=False)
class VariableContent:
    """The content of a variable after a step."""

    #: One of DTYPES; empty if it was not a tensor of one of these.
    dtype: str = ""
    #: In float64; None if it was not a tensor.
    values: np.ndarray | None = None
    #: The name of its class.
    kind: str = ""

    @property
    def missing(self) -> bool:
        """Whether it was None."""
        return self.kind == "NoneType"

    @property
    def stored(self) -> np.ndarray | None:
        """The values in their dtype; None if there are none."""
        return None if self.values is None or not self.dtype else self.values.astype(DTYPES[self.dtype])


@attrs.frozen(eq=False)
class StepOutcome:
    """The outcome of running one step once."""

    seen: Mapping[str, VariableContent] = attrs.field(factory=dict)
    #: The class of the exception that it raised; empty if it raised none.
    raised: str = ""


#: The first lines of a probe, which record the results of every step.
_RECORDING_CODE = """
import json as _json
_notes = []
def _one(value):
    try:
        values = [one.hex() for one in numbers(value).ravel().tolist()]
        shape = [int(size) for size in value.shape]
        return {"kind": type(value).__name__, "dtype": str(value.dtype), "shape": shape, "values": values}
    except Exception:
        return {"kind": type(value).__name__}
def _note(place, raised="", **read):
    _notes.append([place, raised, {name: _one(value) for name, value in read.items()}])
"""


def probe(head: Sequence[str], bodies: Sequence[tuple[Sequence[str], Mapping[str, str], int]], file: str) -> str:
    """
    The text of a probe, which writes what it sees to a file.

    ``bodies``: for each step its lines, the variables to read by name, and how often it runs.
    """
    lines = [*head, *_RECORDING_CODE.splitlines()]
    for place, (body, read, times) in enumerate(bodies):
        noted = ", ".join(f"{name!r}: {variable}" for name, variable in read.items())
        inner = [*body, f"_note({place}, **{{{noted}}})"]
        lines += [f"for _ in range({times}):", "    try:", *indented(inner, 2)]
        lines += ["    except Exception as _error:", f"        _note({place}, type(_error).__name__)"]
    lines += [f"with open({file!r}, 'w') as _stream:", "    _stream.write(_json.dumps(_notes))", ""]
    return "\n".join(lines)


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """The lines, including those within them, indented."""
    return ["    " * depth + one for line in lines for one in line.split("\n")]


def seen(text: Callable[[str], str], count: int, run: Runner) -> list[list[StepOutcome]]:
    """
    The outcomes of ``count`` steps, one for each time that a step ran.

    ``text``: the probe that writes to a file of this name. Raises CannotWrite if nothing can be seen.
    """
    with tempfile.TemporaryDirectory(prefix="normspec-") as folder:
        file = Path(folder) / "seen.json"
        said = run(text(str(file)))
        try:
            notes = json.loads(file.read_text(encoding="utf-8"))
            found: list[list[StepOutcome]] = [[] for _ in range(count)]
            for place, raised, read in notes:
                found[place].append(StepOutcome({name: _seen(one) for name, one in read.items()}, str(raised)))
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise CannotWrite(f"its calls could not be made by a script: {said or error}") from error
    return found


def _seen(one: Mapping[str, Any]) -> VariableContent:
    if "values" not in one:
        return VariableContent(kind=str(one["kind"]))
    named = re.search("bfloat16|float16|float32|float64", str(one["dtype"]))
    values = np.array([float.fromhex(value) for value in one["values"]], np.float64).reshape(one["shape"])
    return VariableContent(named.group() if named else "", values, str(one["kind"]))


def in_a_process(python: str) -> Runner:
    """Runs programs with this interpreter, each in a process and a file of its own."""

    def run(text: str) -> str | None:
        with tempfile.TemporaryDirectory(prefix="normspec-") as folder:
            file = Path(folder) / "program.py"
            file.write_text(text, encoding="utf-8")
            try:
                ended = subprocess.run(
                    [python, str(file)],
                    capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
                    stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"it took longer than {_SECONDS} seconds"
            except OSError as error:
                return str(error)
        if ended.returncode == 0:
            return None
        lines = ended.stderr.strip().splitlines()
        return lines[-1] if lines else f"it ended with status {ended.returncode}"

    return run
