"""What a row of the table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: What is kept on disk, and how the table tells it.
KEPT = {
    "nothing": "",
    "cold": "truths kept, none there yet",
    "warm": "truths kept by a run before",
    "unchanged": "results kept by a run before",
}

DTYPES = ("float16", "bfloat16", "float32", "float64")

#: What one run of a row has measured, by what it is called: seconds, unless the name says otherwise.
Measured = Mapping[str, float]


class NotThere(Exception):
    """This version, or this machine, has not what the row measures."""


@dataclass(frozen=True)
class Row:
    """One row: a name for the command line, a sentence for the reader, and what measures it once."""

    name: str
    what: str
    #: Handed one of KEPT. Raises NotThere.
    measure: Callable[[str], Measured]
    #: Whether it judges cases, whose truths may be kept.
    judges: bool = False
    #: Whether it runs only where it is named: it takes minutes.
    long: bool = False
