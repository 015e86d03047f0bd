"""A row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: The states of what is kept on disk, and their names in the table.
KEPT = {
    "nothing": "",
    "cold": "truths kept, none there yet",
    "warm": "truths kept by a run before",
    "unchanged": "results kept by a run before",
}

DTYPES = ("float16", "bfloat16", "float32", "float64")

#: The measurements of one run of a row, by name: seconds, unless the name says otherwise.
Measured = Mapping[str, float]


class NotThere(Exception):
    """This version or machine lacks what the row measures."""


@dataclass(frozen=True)
class Row:
    """One row: a name for the command line, a sentence for the reader, and a function that measures it once."""

    name: str
    what: str
    #: Takes one of KEPT. Raises NotThere.
    measure: Callable[[str], Measured]
    #: Whether it judges cases, whose truths may be kept.
    judges: bool = False
    #: Whether it runs only if it is named, because it takes minutes.
    long: bool = False
