"""
Compares descriptions of one mistake in several dtypes.

They may differ only in how often it shows and where it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_RANGE = rf"({_NUMBER})(?: to ({_NUMBER}))?"
#: Numbers that differ a little between dtypes, because roundings do, and because a dtype may lack some cases.
_VARYING = re.compile(
    rf"(?<= in ){_RANGE}(?= of \d)|(?<= of ){_RANGE}(?= cases)|(?<=about ){_RANGE}|(?<=largest error is ){_RANGE}(?= %)"
)
#: Numbers that differ by a larger factor are about different mistakes. Neighbouring cases lie about this far apart.
_APART = 4


def in_one(one: str, other: str) -> str | None:
    """A sentence for both, with "26 to 28" where they say 26 and 28; None if they differ in anything else."""
    mine, others = list(_VARYING.finditer(one)), list(_VARYING.finditer(other))
    if _VARYING.sub("#", one) != _VARYING.sub("#", other):
        return None
    pairs = [_span(here, there) for here, there in zip(mine, others, strict=True)]
    if any(float(last) > _APART * float(first) for first, last in pairs):
        return None
    texts: Iterator[str] = iter(first if first == last else f"{first} to {last}" for first, last in pairs)
    return _VARYING.sub(lambda _: next(texts), one)


def _span(here: re.Match[str], there: re.Match[str]) -> tuple[str, str]:
    """The smallest and the largest number of two matches, as they are written."""
    numbers = sorted((one for match in (here, there) for one in match.groups() if one), key=float)
    return numbers[0], numbers[-1]
