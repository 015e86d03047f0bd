"""Sums in another order at each call, as atomic additions of many threads make them: sound, and not repeatable."""

from __future__ import annotations

from itertools import count

import numpy as np

from ...adapters.numpy.operators.rows import Array, RowSteps
from .registry import sound
from .sums import sequential_sum


class Unordered(RowSteps):
    """Every sum in another order at each call, where x has more elements than a bound."""

    #: Set by the operator's base at the start of each call.
    shape: tuple[int, ...]
    #: Up to so many elements sums keep their order: kernels use several blocks, and atomic additions, past some size.
    above: int

    def __init__(self) -> None:
        self._sums = count()

    def order(self, terms: int) -> Array | None:
        """The order of the next sum of so many terms; None where they keep theirs."""
        if np.prod(self.shape, dtype=int) <= self.above:
            return None
        # Numbered, not drawn from the clock: the same calls in the same order give the same bits.
        return np.random.Generator(np.random.Philox(next(self._sums))).permutation(terms)

    def row_sum(self, terms: Array) -> Array:
        order = self.order(terms.shape[1])
        return super().row_sum(terms) if order is None else sequential_sum(terms[:, order])

    def parameter_sum(self, terms: Array) -> Array:
        order = self.order(len(terms)) if self.layout.along_rows else None
        if order is None:
            return super().parameter_sum(terms)
        return np.add.accumulate(terms[order], axis=0)[-1:].copy()


@sound("unordered-above-60")
class UnorderedAbove60(Unordered):
    """Every sum in another order at each call where x has more than 60 elements."""

    above = 60


@sound("unordered-above-1000")
class UnorderedAbove1000(Unordered):
    """Every sum in another order at each call where x has more than 1000 elements."""

    above = 1000


@sound("unordered-above-100000")
class UnorderedAbove100000(Unordered):
    """Every sum in another order at each call where x has more than 100,000 elements."""

    above = 100_000
