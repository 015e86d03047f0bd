"""The commands of docs/layers.md and their verdicts, for the tests of each framework."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from normspec.conformance.command_line.root import main

PAGE = Path(__file__).parent.parent.parent / "docs" / "layers.md"

#: A row of a table whose last cells are a command and, perhaps, its violations.
_ROW = re.compile(r"^\|[^|]*\| `normspec (check [^`]+)` \|(?: (conforms|violates ([^|]+)) \|)?$", re.M)


@attrs.frozen
class Row:
    """A command of the page."""

    command: tuple[str, ...]
    #: The requirements that it is said to violate; none where it conforms.
    violated: frozenset[str]

    @property
    def name(self) -> str:
        """The target that it checks."""
        return self.command[1]


def rows() -> list[Row]:
    """Every command of the page's tables."""
    return [
        Row(tuple(shlex.split(command)), frozenset(ids.strip().split(", ") if ids else ()))
        for command, _, ids in _ROW.findall(PAGE.read_text(encoding="utf-8"))
    ]


def cases(wanted: Callable[[Row], bool]) -> list[Any]:
    """
    The rows to test, each by its command.

    Each run has the frameworks' own layers, the first of each file, and what violates something; the night has the
    others.
    """
    found, files = [], set()
    for row in filter(wanted, rows()):
        file, _, _ = row.name.partition(":")
        usual = row.violated or file not in files or not file.endswith(".py")
        files.add(file)
        found.append(pytest.param(row, id=" ".join(row.command[1:]), marks=[] if usual else [pytest.mark.nightly]))
    return found


def check(row: Row, checkout: Path, folder: Path, monkeypatch) -> None:
    """Run the command of a row, and compare the result with the row's verdict."""
    monkeypatch.chdir(checkout)
    file = folder / "report.json"
    status = main([*row.command, "--profile", "quick", "--dtype", "float32", "--json", str(file)])
    results = json.loads(file.read_text(encoding="utf-8"))["results"]
    failed = {result["requirement"] for result in results if result["verdict"] == "fail"}
    assert status == (1 if row.violated else 0), sorted(failed)
    assert failed >= row.violated
