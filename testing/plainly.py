"""
Whether results plainly lie within their envelope: a few of its terms say so where a result is good.

Most assertions hold, and most of these by far. For them the values are evaluated in plain float64, and compared with
some terms of the envelope, less what that evaluation may lose: a third of the work of the whole. Where that does not
do, nothing is known, and the envelope decides.

How it is derived. What A1 to A14 (spec/accuracy.md) say of an algorithm in u they say of the evaluation here in U =
2^-53, with sums of height h in the place of s. U is at most u and h at most s, so that each term of the envelope covers
the term of the same origin here, and what is left of it is their difference. An error that a whole row shares, that of
the mean or of r, has the same factors in both. A comment says what a coefficient of the envelope counts, as ours does;
what is not named has been left out of both. `_LESS` and `_MORE` make up for terms of second order, which `Rows.of`
keeps small, and for the roundings of the comparison itself. Where an underflow here errs by half the smallest number of
float64, the envelope has a whole one of its format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs
import numpy as np

from ..reference.envelope_rows import Array
from .call import Call
from .certified import U, height, total

#: The most values of x, copies of which are kept. Of more, the whole envelope costs less than ten times the operator.
MOST = 1 << 17

#: What x, gamma, g, r, 1/r and eps may reach: all that R1, R2 and R6 form of so many values is far within float32.
_LARGEST = 2.0**12

_LESS, _MORE = 1 - 2.0**-16, 1 + 2.0**-16


def within(call: Call, results: Mapping[str, np.ndarray], g: np.ndarray | None) -> bool:
    """Whether all elements of the results are in range and surely within their envelope; if not, nothing is known."""
    a = call.arithmetic
    usual = a.accuracy.variance == "centred" and not a.stores_between and not call.constant
    if not (usual and call.layout.size > 1 and call.x.size <= MOST and results.keys() <= _VALUES.keys()):
        return False
    with np.errstate(all="ignore"):
        rows = Rows.of(call, g)
        return rows is not None and all(_near(rows, name, got) for name, got in results.items())


def _near(rows: Rows, name: str, got: np.ndarray) -> bool:
    """Whether every element of a result is as near as surely lies within its envelope."""
    value, left = _VALUES[name](rows)
    mine = rows.call.rows(got, rows.groups) if value.ndim == 2 else got.reshape(-1)
    return bool((np.abs(mine.astype(np.float64) - value) <= left).all())


@attrs.frozen(eq=False)
class Rows:
    """All groups of a call, one a row, normalised in float64."""

    call: Call
    groups: np.ndarray
    #: How many additions a value passes through in a sum over a group.
    h: int
    #: |x|; r, a column; xhat, and gamma beside it.
    size: Array
    r: Array
    xh: Array
    gamma: Array
    #: The cotangent of y; empty where y is judged.
    g: Array
    #: What is left of rho, the largest relative error of r (A7).
    rho: float

    @classmethod
    def of(cls, call: Call, g: np.ndarray | None) -> Rows | None:
        """None where a rule of range may be touched, or where an error of the statistics is not small."""
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
        h, high = height(n) if call.wide else n - 1, 1 / math.sqrt(least)
        mean, spread = (far * high, 2 * n + 9 * math.sqrt(n)) if centred else (0.0, 0.0)  # W of A4 is at most `spread`
        off = U * (h + 1) * mean  # our error of the mean, in units of 1/r
        e = 2 * u * (n + 4 * math.log2(n) + 4) * mean  # twice theirs (A2)
        # E_v/w (A4), and ours of second order.
        if not (n * off <= 2.0**-20 and 2 * u * (n + 8 + 12 * math.sqrt(n) + spread * mean) + e * e <= 2.0**-3):
            return None
        # 4 u, and half of: eps and its sum 2 u, the variance (s + 8) u of itself. Ours: root and quotient 2 U, and half
        # of: the sum with eps U; of the variance d and its square 3 U, their sum and its quotient (h + 1) U; and `off`
        # squared. The more of w the variance is, the more is left: it is `share` at least.
        share = max(1 - call.settings["eps"] / least, 0.0)
        rho = _left(u * (5 + (n + 7) / 2 * share), U * (2.5 + (h + 4) / 2 * share) + off * off)
        if rho < 0:
            return None
        r = 1 / np.sqrt(w)
        return cls(call, groups, h, size, r, d * r, gamma, pulled, rho)

    def y(self) -> tuple[Array, Array]:
        """y, and how far it may surely be from that (A10)."""
        a, n = self.call.arithmetic, self.xh.shape[1]
        scaled = self.gamma * self.xh
        y = scaled + self.call.parameter_rows("beta", self.groups, 0.0)
        # Of gamma xhat: rho, d and xhat 2 u, the product u. Of y: beta and what it is stored in.
        left = (self.rho + _left(3 * a.u, 3 * U)) * np.abs(scaled) + _left(2 * a.u + a.of_y[0], U) * np.abs(y)
        if self.call.record.centred:  # the mean (A2): sum, quotient and merges (s + 1 + 6 L) u
            left = left + np.abs(self.gamma) * (
                self.r * _sum(self.call, self.size) * _left(a.u * (1 + 6 * math.log2(n) / n), U * (self.h + 1) / n)
            )
        return y, left

    def dx(self) -> tuple[Array, Array]:
        """dx, likewise (A11, A12)."""
        a, n, centred = self.call.arithmetic, self.xh.shape[1], self.call.record.centred
        h = self.gamma * self.g
        size, terms = np.abs(h), h * self.xh
        t = (h - _sum(self.call, h) / n if centred else h) - self.xh * (_sum(self.call, terms) / n)
        dx = self.r * t
        # Of h: itself and its product 2 u, the sum of all three terms 3 u. Of mean|h|: (s + 3) u. Of mean|h xhat|: that
        # with xhat (s + 4) u, and d and xhat 2 u.
        left = _left(5 * a.u, 3 * U) * size
        left = left + np.abs(self.xh) * (_sum(self.call, np.abs(terms)) * (_left(a.u * (n + 5), U * (self.h + 5)) / n))
        if centred:
            left = left + _sum(self.call, size) * (_left(a.u * (n + 2), U * (self.h + 4)) / n)
        left = self.r * left + (self.rho + _left(2 * a.u + a.u_data, U)) * np.abs(dx)
        return dx, left

    def dgamma(self) -> tuple[Array, Array]:
        """dgamma, one value a parameter (A13)."""
        a, layout = self.call.arithmetic, self.call.layout
        # d and xhat 2 u, product and sum (count + 2) u at least. Where a group has a parameter more than once, the sum
        # with its r in front may be small, and rho with it.
        (total, sizes), steps = _shared(self.call, self.g * self.xh)
        left = _left(a.u * (layout.sharing + 4), U * (steps + 3)) + (self.rho if layout.along_rows else 0.0)
        return total, left * sizes + a.u_parameter * _LESS * np.abs(total)

    def dbeta(self) -> tuple[Array, Array]:
        """dbeta, one value a parameter (A14)."""
        a = self.call.arithmetic
        (total, sizes), steps = _shared(self.call, self.g)
        left = _left(a.u * (self.call.layout.sharing - 1), U * steps)
        return total, left * sizes + a.u_parameter * _LESS * np.abs(total)


_VALUES: Mapping[str, Callable[[Rows], tuple[Array, Array]]] = {
    "y": Rows.y, "dx": Rows.dx, "dgamma": Rows.dgamma, "dbeta": Rows.dbeta,
}  # fmt: skip


def _left(theirs: float, ours: float) -> float:
    """What is left of an envelope's coefficient beside that of the error here."""
    return theirs * _LESS - ours * _MORE


def _sum(call: Call, z: Array) -> Array:
    """The sum of each row, a column; where U is far below u, in any order."""
    return total(z) if call.wide else np.add.reduce(z, axis=1, keepdims=True)


def _shared(call: Call, terms: Array) -> tuple[tuple[Array, Array], int]:
    """The sums of terms, and of their sizes, over all that share a parameter; and the height of these sums."""
    layout, both = call.layout, (terms, np.abs(terms))
    if not call.wide:
        return (layout.total(both[0]), layout.total(both[1])), layout.sharing - 1
    lines = (layout.stretches(z).transpose(1, 0, 2).reshape(layout.parameters, layout.sharing) for z in both)
    first, second = (total(z)[:, 0] for z in lines)
    return (first, second), height(layout.sharing)
