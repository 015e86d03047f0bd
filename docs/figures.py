"""The figures and numbers of docs/studies: `python docs/figures.py [NAME...]` runs studies and rewrites them.

For each study it writes NAME.svg and NAME.json there, and the command's output into the block of NAME.md.
"""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from normspec.conformance.command_line.study_table import print_outcome
from normspec.studies.catalogue import STUDIES, study_of
from normspec.studies.drawing import drawn
from normspec.studies.operators import Operators
from normspec.studies.study import Outcome, Scale, Study, run
from normspec.studies.written import json_of

FOLDER = Path(__file__).with_name("studies")

#: The block of a page that has the command's output.
BLOCK = re.compile(r"(?<=^```text\n)claim\b.*?(?=^```$)", re.M | re.S)


def printed(numbers: dict[str, Any]) -> str:
    """The command's output for an outcome, 80 columns wide."""
    text = io.StringIO()
    print_outcome(numbers, Console(file=text, width=80, highlight=False, markup=False, emoji=False))
    return text.getvalue()


def outcome_of(study: Study) -> Outcome:
    """The full study, on the built-in target."""
    return run(study, Operators.of("numpy"), Scale())


def main(names: list[str]) -> None:
    """Run these studies, or all."""
    for study in map(study_of, names or STUDIES):
        outcome = outcome_of(study)
        (FOLDER / f"{study.name}.svg").write_bytes(drawn(outcome.findings)["svg"])
        (FOLDER / f"{study.name}.json").write_text(json_of(outcome), encoding="utf-8")
        page, shown = FOLDER / f"{study.name}.md", printed(json.loads(json_of(outcome)))
        if page.exists():
            text = page.read_text(encoding="utf-8")
            page.write_text(BLOCK.sub(lambda _, new=shown: new, text), encoding="utf-8")
        print(shown)


if __name__ == "__main__":
    main(sys.argv[1:])
