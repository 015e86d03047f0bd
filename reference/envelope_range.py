"""
Where nothing is promised: some sound algorithm overflows there, or underflows too far, before it has the result.

Rules R1 to R3 and R6 of spec/accuracy.md, for rows. What lies outside the range is not judged.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from ..spec.layout import Layout
from .envelope_rows import Array, RowBounds, mean

Inside = NDArray[np.bool_]


def largest(z: Array) -> Array:
    """The largest absolute value in each row, as a column."""
    return np.abs(z).max(axis=1, keepdims=True, initial=0.0)


@attrs.frozen(slots=False, eq=False)
class Range:
    """Which rows, or which of their elements, are in range."""

    rows: RowBounds

    @property
    def stored_limit(self) -> float:
        """
        Half the largest number of the data's format, for what a class stores in it on the way to a result (R3).

        Infinite where nothing is stored, and for native code, whose every number lies in R6.
        """
        return self.rows.arithmetic.largest_data / 2 if self.rows.adds_h1_terms else np.inf

    @property
    def limit(self) -> float:
        """largest/4: the limit for an intermediate result."""
        return self.rows.arithmetic.largest / 4

    @cached_property
    def squares(self) -> Inside:
        """Whether the sum of squares, including eps, cannot overflow (R1)."""
        rows = self.rows
        with np.errstate(over="ignore"):
            return rows.n * (largest(rows.x) ** 2 + rows.eps) <= self.limit

    @cached_property
    def stored(self) -> Inside:
        """Whether the 16-bit format can hold what the class stores in it: xhat, and r too (R3)."""
        rows = self.rows
        a, inside = rows.arithmetic, np.ones(rows.mu.shape, bool)
        if a.stores_between:
            inside = 2 * largest(rows.xh) <= a.largest_data
        if a.narrow and a.accuracy.storage in ("H2", "native"):
            inside = inside & (2 * rows.r <= a.largest_data)
        return inside

    def gain(self, gamma: Array) -> Inside:
        """Whether gamma r, which may be formed before it meets a small term, cannot overflow (R6); gamma by rows."""
        with np.errstate(over="ignore"):
            return np.maximum(1.0, largest(gamma)) * np.maximum(1.0, self.rows.r_high) <= self.limit

    @cached_property
    def r_cubed(self) -> Inside:
        """
        Whether r^3 is normal with room to spare on both sides, for every r that an algorithm may have (R2).

        Gradients of 1/sqrt(w) form r^3. The lower limit is 2^10 times the smallest normal number: algorithms multiply
        r^3 by its factors first, last or in between, and each order loses a few bits below r^3. The upper limit is 2^-6
        of the largest number: r^3 is multiplied by gamma g and by x - mu, which is small where r is large.
        """
        rows, a = self.rows, self.rows.arithmetic
        with np.errstate(over="ignore"):
            return (rows.r_low**3 >= 2.0**10 * a.smallest_normal) & (rows.r_high**3 <= 2.0**-6 * a.largest)

    @cached_property
    def _term(self) -> Array:
        """The factor that r multiplies: x and mu separately where they may be multiplied out, else x - mu (R6)."""
        rows = self.rows
        # The derivative of a one-pass variance also has x and mu separately.
        apart = rows.folded or (rows.centred and rows.arithmetic.accuracy.variance == "one-pass")
        return rows.magnitude if apart else np.abs(rows.d) + rows.mean_error

    def y_terms(self, gamma: Array) -> Inside:
        """Whether y's terms, before they cancel, cannot overflow (R6), in the format that stores them either (R3)."""
        with np.errstate(all="ignore"):
            factors = np.maximum(1.0, np.abs(gamma)) * np.maximum(1.0, self._term)
            inside = factors * np.maximum(1.0, self.rows.r_high) <= self.limit
            return inside & (np.abs(gamma * self.rows.xh) <= self.stored_limit)

    def dx_stored(self, h: Array) -> Inside:
        """
        Whether the data's format holds what a class stores on the way to dx (R3).

        That is h = gamma g, and the three parts of dx before they are added. Where the mean and r are stored, it is
        their cotangents too: sums over the group.
        """
        rows, size = self.rows, np.abs(h)
        if self.stored_limit == np.inf:
            return np.ones(rows.mu.shape, bool)
        if rows.given_mean is not None:
            return size <= self.stored_limit
        with np.errstate(all="ignore"):
            xh = np.abs(rows.xh)
            parts = rows.r_high * (size + rows.centred * mean(size) + xh * mean(size * xh))
            inside = (largest(size) <= self.stored_limit) & (parts <= self.stored_limit)
            if rows.arithmetic.accuracy.storage == "H2":
                of_mean = rows.centred * rows.r_high * mean(size)
                sums = rows.n * np.maximum(of_mean, mean(size * np.abs(rows.d)))
                inside = inside & (sums <= self.stored_limit)
            return inside

    def dx_terms(self, size: Array) -> Inside:
        """Whether dx's sums and terms, before they cancel, cannot overflow (R6); size: |g| max(1, |gamma|)."""
        rows, term = self.rows, self._term
        with np.errstate(all="ignore"):
            more = np.maximum(1.0, rows.r_high)
            inside = size * more <= self.limit
            if rows.given_mean is not None:  # the statistics are constants
                return inside
            moment = mean(size * rows.xh_high)
            inside = inside & (rows.n * largest(size) <= self.limit)
            inside = inside & (rows.n * mean(size * np.maximum(1.0, term)) * more <= self.limit)
            return inside & (moment * np.maximum(rows.n, term) * more**2 <= self.limit)

    def reach(self, g: Array, layout: Layout) -> Array:
        """How large the terms of dgamma may become in sum before they cancel (R6); one value per parameter."""
        with np.errstate(all="ignore"):
            return layout.total(np.abs(g) * np.maximum(1.0, self._term) * np.maximum(1.0, self.rows.r_high))
