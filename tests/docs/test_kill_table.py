"""The pages of the kill table tell of the library as it is now."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from normspec.conformance.faults import registered as faults_there
from normspec.conformance.reporting.kill_table import in_markdown
from normspec.conformance.selftest.matrix import Matrix
from normspec.conformance.selftest.selftest import judge_fault, judge_sound
from normspec.conformance.sound import registered as variants_there
from normspec.spec.operators import OPERATORS

FOLDER = Path(__file__).parents[2] / "docs" / "kill-table"


def rows(text: str, first: str) -> dict[str, dict[str, str]]:
    """The table whose first column has this heading: its rows by their name."""
    found = re.search(rf"^\| {first} \|.*\n\|-.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found is not None
    head, _, *lines = ([cell.strip() for cell in line[1:-1].split(" | ")] for line in found[0].splitlines())
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines}


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_mistake_and_sound_function_is_there(operator):
    """Each with its requirement, and a number of cases in the dtypes in which it shows."""
    text = (FOLDER / f"{operator}.md").read_text(encoding="utf-8")
    told = rows(text, "mistake")
    faults = [one for one in faults_there() if one.operator == operator]
    assert list(told) == [one.name for one in faults]
    for one in faults:
        row = told[one.name]
        assert row["killed by"] == one.requirement
        assert {d for d in ("float16", "bfloat16", "float32", "float64") if row[d].isdigit()} == set(one.dtypes)
    assert list(rows(text, "sound function")) == [one.name for one in variants_there() if one.operator == operator]
    assert not any(row["accused by"] for row in rows(text, "sound function").values())


def test_the_index_counts_them():
    """A row for each operator, with the numbers of its page."""
    told = rows((FOLDER / "README.md").read_text(encoding="utf-8"), "operator")
    for operator in OPERATORS:
        row, page = told[f"[{operator}]({operator}.md)"], (FOLDER / f"{operator}.md").read_text(encoding="utf-8")
        figures = rows(page, "what")
        assert row["mistakes killed"] == figures["mistakes killed, of all"]["how many"]
        assert row["sound functions accused"] == figures["sound functions accused"]["how many"]


@pytest.mark.nightly  # some seconds a mistake
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("operator", OPERATORS)
def test_what_it_tells_is_so(operator):
    """Five mistakes and a sound function, others every time: a run writes the lines that stand there."""
    written = (FOLDER / f"{operator}.md").read_text(encoding="utf-8")
    faults = random.sample([one.name for one in faults_there() if one.operator == operator], 5)
    sound = random.choice([one.name for one in variants_there() if one.operator == operator])
    judged = tuple(judge_fault(name, None, "quick", 0, table=True) for name in faults)
    page = in_markdown(Matrix(judged, (judge_sound(sound, None, "quick", 0),), "quick", 0))
    reasons, anew = (dict(re.findall(r"^- (\w+): (.*)$", text, re.M)) for text in (written, page))
    for first in ("mistake", "sound function"):
        for name, row in rows(page, first).items():
            stands = rows(written, first)[name]
            assert {key: anew.get(cell, cell) for key, cell in row.items()} == {
                key: reasons.get(cell, cell) for key, cell in stands.items()
            }
