"""Histograms of error / envelope, which show how near results come to the limit of what is sound."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

#: Upper edges of the bins, which include their upper edge. There are four bins to an octave, so the last but one holds
#: results that use 84 to 100 % of their envelope. Ratios up to 2^-10, exact results included, share the first bin, and
#: ratios above 1 the last.
EDGES: tuple[float, ...] = tuple(2.0 ** (quarter / 4) for quarter in range(-40, 1))

#: Number of bins.
BINS = len(EDGES) + 1


def bin_of(ratio: float) -> int:
    """The index of the bin of a ratio."""
    return bisect_left(EDGES, ratio)


def add_counts(histogram: list[int], counts: Mapping[int, int]) -> None:
    """Add counts to a histogram, a list of BINS numbers."""
    for index, count in counts.items():
        histogram[index] += count
