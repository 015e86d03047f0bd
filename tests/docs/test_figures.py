"""The figures that README and docs/ give of the fault library are those of the library."""

from __future__ import annotations

import re

from normspec.conformance import sound
from normspec.conformance.faults import registered

from .blocks import CHECKOUT

README = " ".join((CHECKOUT / "README.md").read_text(encoding="utf-8").split())
ACCURACY = " ".join((CHECKOUT / "docs" / "accuracy.md").read_text(encoding="utf-8").split())


def number(pattern: str, text: str) -> int:
    """The number in the sentence that matches."""
    found = re.search(pattern, text)
    assert found is not None, pattern
    return int(found[1].replace(",", ""))


def test_the_readme_says_how_many_faults_there_are_and_how_many_have_a_source():
    """Faults that somebody made in public have a link; the others are mistakes that are easily made."""
    faults = registered()
    assert number(r"library of ([\d,]+) mistakes", README) == len(faults)
    assert number(r"mistakes, ([\d,]+) of them with a link", README) == sum(bool(fault.sources) for fault in faults)


def test_the_figures_of_the_self_test_are_those_of_the_library():
    """Faults, the dtypes in which they show, and sound functions."""
    faults = registered()
    assert number(r"all of ([\d,]+) known faults", ACCURACY) == len(faults)
    assert number(r"in which it shows, ([\d,]+) times in all", ACCURACY) == sum(len(fault.dtypes) for fault in faults)
    assert number(r"none of ([\d,]+) sound functions", ACCURACY) == len(sound.registered())
    assert number(r"against ([\d,]+) sound functions", README) == len(sound.registered())
