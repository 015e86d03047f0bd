"""Reads the words, the verdicts and the signs that the page of notation defines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from .reader import pages

PAGE = "notation"
#: The headings of the tables of words, each with what a row of it is about.
HEADINGS = {"Words": "word", "Verdicts": "verdict"}
#: A row of a table.
ROW = re.compile(r"\| `?(?P<word>[^|`]+)`? \| (?P<meaning>[^|]+) \|")
#: A sign between two results, and its meaning; the heading of the signs.
SIGN = re.compile(r" {4}a (?P<word>\[.\]) b +(?P<meaning>.+)")
RELATIONS = "Relations between results"


@dataclass(frozen=True)
class Word:
    """A word with its meaning on all pages and in reports."""

    word: str
    meaning: str
    #: What it is: a word, a verdict or a sign.
    kind: str
    #: The anchor of the section that defines it.
    anchor: str

    @property
    def of_report(self) -> bool:
        """Whether it is the label of a row of a report."""
        return self.meaning.startswith("in a report,")


@cache
def words() -> Mapping[str, Word]:
    """Return the words, then the verdicts, then the signs, each by itself and in the order of the page."""
    found = [
        Word(row["word"], row["meaning"], kind, heading.lower())
        for heading, kind in HEADINGS.items()
        for row in [*_matches(ROW, heading)][1:]  # the first row names the columns
    ]
    found += [
        Word(sign["word"], sign["meaning"], "sign", RELATIONS.lower().replace(" ", "-"))
        for sign in _matches(SIGN, RELATIONS)
    ]
    return MappingProxyType({one.word: one for one in found})


def _matches(line: re.Pattern[str], heading: str) -> Iterator[re.Match[str]]:
    """The lines of such a form under a heading of the page."""
    _, _, after = pages()[PAGE].partition(f"\n## {heading}\n")
    for one in after.partition("\n## ")[0].splitlines():
        if (match := line.fullmatch(one)) is not None:
            yield match
