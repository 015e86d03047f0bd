"""Reads the words that the page of notation defines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from .reader import pages

PAGE = "notation"
#: The heading of the table of words, and a row of it.
HEADING = "## Words"
ROW = re.compile(r"\| (?P<word>[^|]+) \| (?P<meaning>[^|]+) \|")


@dataclass(frozen=True)
class Word:
    """A word with its meaning on all pages and in reports."""

    word: str
    meaning: str


@cache
def words() -> Mapping[str, Word]:
    """Return each defined word by itself, in the order of the page."""
    _, _, after = pages()[PAGE].partition(f"\n{HEADING}\n")
    table, _, _ = after.partition("\n## ")
    rows = [row for line in table.splitlines() if (row := ROW.fullmatch(line))]
    found = [Word(row["word"], row["meaning"]) for row in rows[1:]]  # the first row names the columns
    return MappingProxyType({one.word: one for one in found})
