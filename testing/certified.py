"""
Values of some groups in plain float64, each with a bound on its distance from the exact value.

They decide nearly every element of float64 data at a fiftieth of the cost of exact values. Elements that are nearer to
the envelope's edge than their bound are left to the exact values. The bounds are those of this very evaluation. Every
sum is a sum of sums over stretches of about sqrt(n) values, so it errs by at most h u sum|t|, h about 2 sqrt(n), in
whatever order NumPy adds (A1 of spec/accuracy.md, twice). u = 2^-53; every first-order term is named where it arises,
and SECOND_ORDER covers the terms of order u^2, including h^2 u^2. The bound is infinite where those are not small, or
where something might underflow or overflow.
"""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from ..reference.envelope_results import RowEnvelope
from ..reference.envelope_rows import Array, RowBounds

U = 2.0**-53

#: h u is at most 2^-30 for groups of up to 2^44 values, and so the terms of second order are below 2^-20 of a bound.
SECOND_ORDER = 1 + 2.0**-20

#: Sizes between which no square underflows or overflows by an amount that matters to the bounds.
_SMALLEST, _LARGEST = 2.0**-400, 2.0**400

#: The most that the underflows of a few products add up to, where each factor is at most _LARGEST.
_UNDERFLOW = 2.0**-1070


def sum_depth(n: int) -> int:
    """The number of additions a value passes through in a sum of n: in its stretch, of stretches, and the remainder."""
    length = _stretch(n)
    return length - 1 + n // length - 1 + (n % length > 0)


def _stretch(n: int) -> int:
    return 1 << max(0, round(math.log2(max(n, 1)) / 2))


def row_sum(z: Array) -> Array:
    """The sum of each row, as a column, computed by stretches."""
    n = z.shape[1]
    length = _stretch(n)
    whole = n - n % length
    sums = z[:, :whole].reshape(len(z), -1, length).sum(axis=2).sum(axis=1, keepdims=True)
    return sums + z[:, whole:].sum(axis=1, keepdims=True) if whole < n else sums


def row_mean(z: Array) -> Array:
    """The mean of each row, as a column: off by at most (h + 1) u mean|z|."""
    return row_sum(z) / z.shape[1]


@attrs.frozen(eq=False, slots=False)
class Certified:
    """
    The values of a matrix with one group per row, and their bounds.

    Statistics, d and xhat are those of the envelope's own evaluation. The bounds on their errors are computed here.
    """

    forward: RowEnvelope

    @property
    def rows(self) -> RowBounds:
        """The data with its statistics in float64."""
        return self.forward.rows

    @property
    def _constant(self) -> bool:
        return self.rows.given_mean is not None

    @cached_property
    def h(self) -> int:
        """The depth of a sum over a group."""
        return sum_depth(self.rows.n)

    @cached_property
    def _mean_square(self) -> Array:
        """The mean of d^2, a column: its relative error for the given d is at most (h + 3) u."""
        return row_mean(self.rows.d * self.rows.d)

    @cached_property
    def subtracted_mean_error(self) -> Array:
        """
        E: the distance of the subtracted mean from the exact one, so that the error of d is at most u |d| + E.

        The mean of d is that distance. As computed, that mean is off by (h + 1) u mean|d|, d by u |d|, and mean|d| is
        at most the root of the mean square.
        """
        if self._constant or not self.rows.centred:
            return np.zeros((len(self.rows.x), 1))
        return SECOND_ORDER * (np.abs(row_mean(self.rows.d)) + U * (self.h + 2) * np.sqrt(self._mean_square))

    @cached_property
    def v_error(self) -> Array:
        """The error of the variance: each square is off by (2 + 1) u d^2 + 2 |d| E + E^2, their mean by (h + 1) u."""
        if self.rows.given_variance is not None:
            return np.zeros_like(self.rows.v)
        v, e = self._mean_square, self.subtracted_mean_error
        return SECOND_ORDER * (U * (self.h + 4) * v + 2 * e * np.sqrt(v) + e * e + np.abs(self.rows.v - v))

    @cached_property
    def rho(self) -> Array:
        """
        The relative error of r: half that of v + eps, and u/2 + 2 u for computing r from it.

        (1 - t)^(-1/2) - 1 is below 0.51 t for t up to 1/64. Beyond that, and outside the range, the error is infinite.
        """
        w = self.rows.w
        with np.errstate(all="ignore"):
            t = self.v_error / w
            size = np.abs(self.rows.x).max(axis=1, keepdims=True, initial=0.0)
            sound = (t <= 2.0**-6) & (w >= _SMALLEST) & (w <= _LARGEST) & (size <= _LARGEST)
        return np.where(sound, SECOND_ORDER * (0.51 * t + 3 * U), np.inf)

    @cached_property
    def xh_error(self) -> Array:
        """The error of xhat: u from d and u from the product, rho from r, and E."""
        rows = self.rows
        return SECOND_ORDER * (np.abs(rows.xh) * (self.rho + 2 * U) + rows.r * self.subtracted_mean_error) + _UNDERFLOW

    def y(self) -> tuple[Array, Array]:
        """gamma xhat + beta, and its error: that of xhat, and u each from the product and the sum."""
        rows, gamma = self.rows, self.forward.gamma
        scaled = gamma * rows.xh
        y = scaled + self.forward.beta
        error = np.abs(scaled) * (SECOND_ORDER * (self.rho + 3 * U)) + np.abs(gamma) * (
            SECOND_ORDER * rows.r * self.subtracted_mean_error + _UNDERFLOW
        )
        return y, _known(error + U * SECOND_ORDER * np.abs(y) + _UNDERFLOW)

    def dx(self, g: Array) -> tuple[Array, Array]:
        """r P(gamma g), and its error."""
        rows = self.rows
        h = self.forward.gamma * g  # off by u |h|
        if self._constant:
            dx = h * rows.r
            return dx, _known(SECOND_ORDER * np.abs(dx) * (self.rho + 2 * U) + _UNDERFLOW)
        size, xh = np.abs(h), np.abs(rows.xh)
        first, second = row_mean(h) if rows.centred else np.zeros((len(h), 1)), row_mean(h * rows.xh)
        # For the means: (h + 1) u, u from h itself, and u from the product with xhat or the error of xhat.
        e1 = U * (self.h + 2) * row_mean(size) * rows.centred
        e2 = U * (self.h + 3) * row_mean(size * xh) + row_mean(size * self.xh_error)
        moved = rows.xh * second
        once = h - first
        t = once - moved
        error = U * (size + np.abs(once) + np.abs(moved) + np.abs(t)) + e1
        error = error + self.xh_error * (np.abs(second) + e2) + xh * e2
        dx = rows.r * t
        return dx, _known(
            SECOND_ORDER * (rows.r * (1 + self.rho) * error + np.abs(dx) * (self.rho + U)) + 16 * _UNDERFLOW
        )

    def terms(self, g: Array) -> tuple[Array, Array]:
        """The terms g xhat of dgamma, and their errors."""
        terms = g * self.rows.xh
        return terms, _known(SECOND_ORDER * (np.abs(g) * self.xh_error + U * np.abs(terms)) + _UNDERFLOW)

    def mean_error(self) -> Array:
        """The error of the mean of each group, a column."""
        return _known(self.subtracted_mean_error + _UNDERFLOW)

    def variance_error(self) -> Array:
        """The error of the variance of each group, a column."""
        return _known(self.v_error + _UNDERFLOW)


def _known(error: Array) -> Array:
    """An error; infinite where it is NaN, so unknown."""
    return np.where(np.isnan(error), np.inf, error)
