"""Ratios of error to envelope, counted in bins: how near what was judged comes to what is still sound."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

#: The upper edges of the bins, which are closed above: four to an octave, so that the last but one holds what uses 84
#: to 100 % of its envelope. What lies below 2^-10 is one bin, exact results among it, and what lies above 1 is another.
EDGES: tuple[float, ...] = tuple(2.0 ** (quarter / 4) for quarter in range(-40, 1))

#: How many bins there are.
BINS = len(EDGES) + 1


def bin_of(ratio: float) -> int:
    """The number of the bin of a ratio, from 0 on."""
    return bisect_left(EDGES, ratio)


def added(to: list[int], counts: Mapping[int, int]) -> None:
    """Add counts to a histogram, a list of BINS numbers."""
    for place, count in counts.items():
        to[place] += count
