"""The table of the output for each mistake; run as a module, it rewrites the table."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ..runs import run
from . import UNSEEN
from .mistake import Mistake

FILE = Path(__file__).parent / "descriptions.md"

_HEAD = """# Mistakes that the library does not have, and what is printed for each

What is printed as the cause, at `quick` in float32. `test_unseen.py` holds a sample of
them to this table in every run, and all of them among the campaigns. The table is written anew by
`python -m normspec.tests.conformance.unseen.table`.

| operator | mistake | what its author does | what is printed |
|---|---|---|---|
"""


def printed(mistake: Mistake) -> tuple[tuple[str, ...], str]:
    """The faults that are named for a mistake, and the sentences of its causes."""
    with np.errstate(all="ignore"):
        causes = run(mistake.target(), explain=True).causes
    return tuple(fault for cause in causes for fault in cause.faults), " ".join(cause.sentence for cause in causes)


def row(mistake: Mistake, sentence: str) -> str:
    """Its line of the table."""
    cells = (mistake.operator, mistake.name, mistake.what, sentence or "(nothing)")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def kept() -> dict[str, str]:
    """Each mistake's line, by its name."""
    lines = [line for line in FILE.read_text().splitlines() if line.startswith("| ")][1:]
    return {line.split(" | ")[1]: line for line in lines}


def main() -> None:
    """Write the table; only the names given, if any, are run again."""
    lines = {} if not sys.argv[1:] else kept()
    for mistake in UNSEEN.values():
        if not sys.argv[1:] or mistake.name in sys.argv[1:]:
            lines[mistake.name] = row(mistake, printed(mistake)[1])
    FILE.write_text(_HEAD + "".join(f"{lines[name]}\n" for name in UNSEEN if name in lines))


if __name__ == "__main__":
    main()
