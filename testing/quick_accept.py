"""
A quick test that results surely lie within their envelope: for a good result, a few of the envelope's terms show it.

Most assertions hold, and most of these by far. For those, the values are evaluated in plain float64 and compared with
some terms of the envelope, less the error of that evaluation: a third of the work of the whole envelope. Where this is
not enough, nothing is known, and the envelope decides.

Derivation. What A1 to A14 (spec/accuracy.md) say of an algorithm in u also holds for the evaluation here, with U =
2^-53 for u and sums of depth h in place of s. U is at most u and h at most s, so each term of the envelope covers
the term of the same origin here, and their difference is what remains. An error that a whole row shares, that of the
mean or of r, has the same factors in both. Comments say what a coefficient of the envelope counts, and what ours
counts; terms that are not named are left out of both. `_LESS` and `_MORE` make up for terms of second order, which
`Float64Rows.of` keeps small, and for the roundings of the comparison itself. Where an underflow here errs by half the
smallest number of float64, the envelope has a whole smallest number of its format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs
import numpy as np

from ..reference.envelope_rows import Array
from .call import Call
from .certified import U, row_sum, sum_depth

#: The most values of x for which copies are kept. For more, the whole envelope costs under ten times the operator.
MOST_VALUES = 1 << 17

#: Limit for x, gamma, g, r, 1/r and eps. All that R1, R2 and R6 form of MOST_VALUES such values is far within float32.
_LARGEST = 2.0**12

_LESS, _MORE = 1 - 2.0**-16, 1 + 2.0**-16


def surely_within(call: Call, results: Mapping[str, np.ndarray], g: np.ndarray | None) -> bool:
    """Whether all elements of the results are in range and surely within their envelope; False leaves that open."""
    a = call.arithmetic
    usual = a.accuracy.variance == "centred" and not a.stores_between and not call.statistics_given
    if not (usual and call.layout.size > 1 and call.x.size <= MOST_VALUES and results.keys() <= _VALUES.keys()):
        return False
    with np.errstate(all="ignore"):
        rows = Float64Rows.of(call, g)
        return rows is not None and all(_surely_within_one(rows, name, got) for name, got in results.items())


def _surely_within_one(rows: Float64Rows, name: str, got: np.ndarray) -> bool:
    """Whether every element of a result surely lies within its envelope."""
    value, left = _VALUES[name](rows)
    mine = rows.call.rows(got, rows.groups) if value.ndim == 2 else got.reshape(-1)
    return bool((np.abs(mine.astype(np.float64) - value) <= left).all())


@attrs.frozen(eq=False)
class Float64Rows:
    """All groups of a call, one per row, normalised in float64."""

    call: Call
    groups: np.ndarray
    #: The number of additions a value passes through in a sum over a group.
    h: int
    #: |x|; r, a column; xhat, and gamma beside it.
    size: Array
    r: Array
    xh: Array
    gamma: Array
    #: The cotangent of y; empty where y is judged.
    g: Array
    #: The remainder of rho, the largest relative error of r (A7).
    rho: float

    @classmethod
    def of(cls, call: Call, g: np.ndarray | None) -> Float64Rows | None:
        """None if the range rules might not hold, or if an error of the statistics is not small."""
        u, n, centred = call.arithmetic.u, call.layout.size, call.record.centred
        groups = np.arange(call.layout.count)
        x, gamma = call.rows(call.x, groups).astype(np.float64), call.parameter_rows("gamma", groups, 1.0)
        size = np.abs(x)
        d = x - _sum(call, x) / n if centred else x
        w = _sum(call, d * d) / n + call.settings["eps"]
        far, least = float(size.max()), float(w.min())
        if not (
            far <= _LARGEST and least >= _LARGEST**-2 and w.max() <= _LARGEST**2 and np.abs(gamma).max() <= _LARGEST
        ):
            return None
        pulled = np.zeros(0) if g is None else call.rows(g, groups).astype(np.float64)
        if not np.abs(pulled).max(initial=0.0) <= _LARGEST:
            return None
        h, high = sum_depth(n) if call.has_float64 else n - 1, 1 / math.sqrt(least)
        mean, spread = (far * high, 2 * n + 9 * math.sqrt(n)) if centred else (0.0, 0.0)  # W of A4 is at most `spread`
        off = U * (h + 1) * mean  # error of the mean here, in units of 1/r
        e = 2 * u * (n + 4 * math.log2(n) + 4) * mean  # twice the envelope's (A2)
        # E_v/w (A4), and the second-order part of the error here.
        if not (n * off <= 2.0**-20 and 2 * u * (n + 8 + 12 * math.sqrt(n) + spread * mean) + e * e <= 2.0**-3):
            return None
        # Envelope: 4 u, and half of: 2 u for eps and its sum, (s + 8) u relative to the variance. Here: 2 U for root
        # and quotient, and half of: U for the sum with eps, 3 U for the variance's d and square, (h + 1) U for its sum
        # and quotient; and `off` squared. The larger the variance's share of w, the more remains: it is at least
        # `share`.
        share = max(1 - call.settings["eps"] / least, 0.0)
        rho = _remainder(u * (5 + (n + 7) / 2 * share), U * (2.5 + (h + 4) / 2 * share) + off * off)
        if rho < 0:
            return None
        r = 1 / np.sqrt(w)
        return cls(call, groups, h, size, r, d * r, gamma, pulled, rho)

    def y(self) -> tuple[Array, Array]:
        """y, and the distance at which a result surely lies within the envelope (A10)."""
        a, n = self.call.arithmetic, self.xh.shape[1]
        scaled = self.gamma * self.xh
        y = scaled + self.call.parameter_rows("beta", self.groups, 0.0)
        # Of gamma xhat: rho, 2 u for d and xhat, u for the product. Of y: beta and the rounding to its format.
        left = (self.rho + _remainder(3 * a.u, 3 * U)) * np.abs(scaled) + _remainder(2 * a.u + a.of_y[0], U) * np.abs(y)
        if self.call.record.centred:  # the mean (A2): (s + 1 + 6 L) u for sum, quotient and merges
            left = left + np.abs(self.gamma) * (
                self.r * _sum(self.call, self.size) * _remainder(a.u * (1 + 6 * math.log2(n) / n), U * (self.h + 1) / n)
            )
        return y, left

    def dx(self) -> tuple[Array, Array]:
        """dx, and the distance at which a result surely lies within the envelope (A11, A12)."""
        a, n, centred = self.call.arithmetic, self.xh.shape[1], self.call.record.centred
        h = self.gamma * self.g
        size, terms = np.abs(h), h * self.xh
        t = (h - _sum(self.call, h) / n if centred else h) - self.xh * (_sum(self.call, terms) / n)
        dx = self.r * t
        # Of h: 2 u for itself and its product, 3 u for the sum of all three terms. Of mean|h|: (s + 3) u. Of
        # mean|h xhat|: (s + 4) u with the product, and 2 u for d and xhat.
        left = _remainder(5 * a.u, 3 * U) * size
        left = left + np.abs(self.xh) * (
            _sum(self.call, np.abs(terms)) * (_remainder(a.u * (n + 5), U * (self.h + 5)) / n)
        )
        if centred:
            left = left + _sum(self.call, size) * (_remainder(a.u * (n + 2), U * (self.h + 4)) / n)
        left = self.r * left + (self.rho + _remainder(2 * a.u + a.u_data, U)) * np.abs(dx)
        return dx, left

    def dgamma(self) -> tuple[Array, Array]:
        """dgamma, one value per parameter (A13)."""
        a, layout = self.call.arithmetic, self.call.layout
        # 2 u for d and xhat, at least (count + 2) u for product and sum. If a group has a parameter more than once,
        # the sum multiplied by r may be small, and rho's share with it.
        (total, sizes), steps = _shared(self.call, self.g * self.xh)
        left = _remainder(a.u * (layout.sharing + 4), U * (steps + 3)) + (self.rho if layout.along_rows else 0.0)
        return total, left * sizes + a.u_parameter * _LESS * np.abs(total)

    def dbeta(self) -> tuple[Array, Array]:
        """dbeta, one value per parameter (A14)."""
        a = self.call.arithmetic
        (total, sizes), steps = _shared(self.call, self.g)
        left = _remainder(a.u * (self.call.layout.sharing - 1), U * steps)
        return total, left * sizes + a.u_parameter * _LESS * np.abs(total)


_VALUES: Mapping[str, Callable[[Float64Rows], tuple[Array, Array]]] = {
    "y": Float64Rows.y, "dx": Float64Rows.dx, "dgamma": Float64Rows.dgamma, "dbeta": Float64Rows.dbeta,
}  # fmt: skip


def _remainder(theirs: float, ours: float) -> float:
    """The remainder of an envelope's coefficient after the coefficient of the error here."""
    return theirs * _LESS - ours * _MORE


def _sum(call: Call, z: Array) -> Array:
    """The sum of each row, a column; in any order where U is far below u."""
    return row_sum(z) if call.has_float64 else np.add.reduce(z, axis=1, keepdims=True)


def _shared(call: Call, terms: Array) -> tuple[tuple[Array, Array], int]:
    """The sums of terms, and of their sizes, over all values that share a parameter; and the depth of the sums."""
    layout, both = call.layout, (terms, np.abs(terms))
    if not call.has_float64:
        return (layout.total(both[0]), layout.total(both[1])), layout.sharing - 1
    lines = (layout.stretches(z).transpose(1, 0, 2).reshape(layout.parameters, layout.sharing) for z in both)
    first, second = (row_sum(z)[:, 0] for z in lines)
    return (first, second), sum_depth(layout.sharing)
