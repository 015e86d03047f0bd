"""
The table of real bugs, with the output for each; run as a module, it rewrites the table.

`python -m normspec.tests.conformance.catalogue.table` runs all functions, which takes half an hour. Given names of
functions, it runs only these and keeps the table's text for the others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from normspec import Report

from ..runs import run
from . import CATALOGUE
from .written import Written

_FOLDER = Path(__file__).parent
FILE = _FOLDER / "catalogue.md"
#: Each bug: its name here, the layer, the mistake, links to reports of it, and why it has no function here.
BUGS: list[Mapping[str, Any]] = json.loads((_FOLDER / "bugs.json").read_text(encoding="utf-8"))

_HEAD = """# Real bugs, as functions

{count} bugs that were filed against real libraries, {written} of them as {functions} small functions in the files
beside this one, and what `normspec check` prints of each at `quick`: the name of the mistake, or its description.
`test_catalogue.py` holds a sample to this table in every run, and all of it among the campaigns. It is written anew by
`python -m normspec.tests.conformance.catalogue.table`.

{summary}

## Bugs that are functions

| bug | what was wrong | function | dtype | expected | what is printed |
|---|---|---|---|---|---|
"""
_REST = """
## Bugs that are no functions

| bug | what was wrong | why there is no function |
|---|---|---|
"""


@attrs.frozen
class Printed:
    """The output for a function."""

    #: Whether nothing is violated.
    conforms: bool
    #: The names of the mistakes, each with its sentence; of a mistake without a name, its description.
    causes: tuple[str, ...] = ()
    #: Where there is no cause, the requirements that are violated.
    others: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The output in one cell."""
        if self.conforms:
            return "CONFORMS"
        return "; ".join(self.causes) or f"{', '.join(self.others)} violated"

    @classmethod
    def of(cls, report: Report) -> Printed:
        """The content of a report."""
        failures = report.failures()
        causes = tuple(_cause(one.faults, one.sentence) for one in report.causes)
        alone = dict.fromkeys(one.requirement for one in failures if not one.follows_from)
        return cls(not failures, causes, () if causes else tuple(alone))


def _cause(faults: tuple[str, ...], sentence: str) -> str:
    return f"`{'`, `'.join(faults)}`: {sentence}" if faults else sentence


def printed(written: Written) -> Printed:
    """Run a function and return the output for it."""
    asked = {"dtypes": (written.dtype,), "conventions": dict(written.conventions)}
    with np.errstate(all="ignore"):
        return Printed.of(run(written.target(), explain=True, **asked))


def expected(written: Written) -> str:
    """The expected output for a function."""
    return f"conforms: {written.conforms}" if written.conforms else "is violated"


def named(bug: Mapping[str, Any]) -> str:
    """A bug and its sources."""
    links = [f"[{place}]({link})" for place, link in enumerate(bug["links"], 1)]
    return " ".join([bug["bug"], *links, *(f"({place})" for place in bug.get("seen_in", ()))])


def row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def kept() -> dict[str, str]:
    """The table's text for each function."""
    found = {}
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else ():
        cells = line.replace("\\|", "\0").strip("| ").split(" | ")
        if len(cells) == 6 and cells[2].removeprefix("`").removesuffix("`") in CATALOGUE:
            found[cells[2].strip("`")] = cells[5].replace("\0", "|")
    return found


def text(words: Mapping[str, str]) -> str:
    """The whole file, from the output for each function."""
    functions = {bug["bug"]: [one for one in CATALOGUE.values() if bug["bug"] in one.bugs] for bug in BUGS}
    lines = [
        row(named(bug), bug["what"], f"`{one.name}`", one.dtype, expected(one), words.get(one.name, ""))
        for bug in BUGS
        for one in functions[bug["bug"]]
    ]
    rest = [row(named(bug), bug["what"], bug["no_function"]) for bug in BUGS if not functions[bug["bug"]]]
    kinds = [_kind(words.get(one, "")) for one in CATALOGUE]
    order = ("are named", "are described", *[one for one in _KINDS.values() if one != "are named"])
    summary = f"Of the functions, {', '.join(f'{kinds.count(kind)} {kind}' for kind in order)}, with the reason."
    head = _HEAD.format(
        count=len(BUGS),
        written=len(BUGS) - len(rest),
        functions=len(CATALOGUE),
        summary=summary,
    )
    return head + "".join(f"{line}\n" for line in lines) + _REST + "".join(f"{line}\n" for line in rest)


#: The beginning or content of a cell, and its meaning for a function.
_KINDS = {
    "`": "are named",
    "without a pattern that was found": "are described by how many cases are wrong alone",
    " violated": "are told by their requirements alone",
    "CONFORMS": "conform",
}


def _kind(words: str) -> str:
    return next((kind for part, kind in _KINDS.items() if part in words), "are described")


def main() -> None:
    """Write the table."""
    words = kept() if sys.argv[1:] else {}
    for name in sys.argv[1:] or CATALOGUE:
        words[name] = printed(CATALOGUE[name]).words
        print(f"{name}: {words[name]}", flush=True)
    FILE.write_text(text(words), encoding="utf-8")


if __name__ == "__main__":
    main()
