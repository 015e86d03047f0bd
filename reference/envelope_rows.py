"""The error envelope on rows: how far a sound algorithm can be from the exact value.

A row is one normalised group, according to the operator's layout. Every formula carries its number on the
page ``spec/accuracy.md``, which derives it; the names are those of the page. All quantities are float64
arrays that broadcast against (rows, n).
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import attrs
import numpy as np
from numpy.typing import NDArray

from .accuracy import Arithmetic

Array = NDArray[np.float64]

#: Covers the cost of evaluating the envelope itself in float64. Where the exact values are evaluated in float64
#: too, it also covers their error, at most 2^-29 of the envelope (A18).
EVALUATION_FACTOR = 1 + 2.0**-20


def mean(z: Array) -> Array:
    """Return the mean over each row, as a column; `z.mean` without its slow argument checks."""
    return np.add.reduce(z, axis=1, keepdims=True) / z.shape[1]


@lru_cache(maxsize=1024)
def _partial_mean_factor(n: int) -> float:
    if n < 2:
        return 0.0
    streamed = np.arange(2, n)
    doubled = 2.0 ** np.arange(1, np.ceil(np.log2(n)))
    return float(np.sqrt(n / streamed - 1).sum() + 3 * np.sqrt(n / doubled - 1).sum() + np.sqrt(n))


@attrs.frozen(slots=False, eq=False)
class RowBounds:
    """The statistics of each row and the largest errors a sound algorithm makes in them."""

    #: The data, exactly as given, shape (rows, n).
    x: Array
    eps: float
    arithmetic: Arithmetic
    #: In inference, the given mean and variance, columns of shape (rows, 1); else None.
    given_mean: Array | None = None
    given_variance: Array | None = None
    #: Whether the mean is subtracted. Where it is not, mu is 0 and v is the mean square.
    centred: bool = True

    @property
    def saved(self) -> bool:
        """Whether the batch statistics are rounded to the data's format before use (class H2)."""
        return self.arithmetic.saves_statistics and self.given_mean is None

    @property
    def adds_h1_terms(self) -> bool:
        """Whether intermediate values are rounded to the data's 16 bits (H1, H2; before the gain in rms_norm)."""
        accuracy = self.arithmetic.accuracy
        before_gain = accuracy.cast == "before-gain" and not self.centred
        return self.arithmetic.narrow and (accuracy.storage in ("H1", "H2") or before_gain)

    @property
    def n(self) -> int:
        return self.x.shape[1]

    @property
    def s(self) -> int:
        """n - 1: a sum of n numbers in any order errs by at most (n-1) u sum|t| (A1)."""
        return self.n - 1

    @property
    def depth(self) -> float:
        """log2(n): the most often that one value can be in the smaller part of a merge (A3)."""
        return float(np.log2(self.n))

    @property
    def partial_mean_factor(self) -> float:
        """W: how far errors of partial means move a merged variance, in units of u sigma mean|x| (A4)."""
        return _partial_mean_factor(self.n)

    @cached_property
    def mu(self) -> Array:
        if self.given_mean is not None:
            return self.given_mean
        if not self.centred:
            return np.zeros((len(self.x), 1))
        first = mean(self.x)
        return first + mean(self.x - first)

    @cached_property
    def d(self) -> Array:
        return self.x - self.mu

    @cached_property
    def v(self) -> Array:
        return mean(self.d * self.d) if self.given_variance is None else self.given_variance

    @cached_property
    def w(self) -> Array:
        return self.v + self.eps

    @cached_property
    def r(self) -> Array:
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(self.w)

    @cached_property
    def xh(self) -> Array:
        with np.errstate(invalid="ignore"):
            return self.d * self.r

    @cached_property
    def mean_error(self) -> Array:
        """E_mu (A2, A3)."""
        a = self.arithmetic
        if self.given_mean is not None or not self.centred:
            return np.zeros_like(self.mu)
        if self.n == 1:  # x/1 and 0 + (x - 0)/1 are exact
            error = np.zeros_like(self.mu)
        else:
            size = np.abs(self.x)
            error = a.u * (
                (self.s + 1 + 6 * self.depth) * mean(size) + 3 * size.max(axis=1, keepdims=True) + np.abs(self.mu)
            )
            if a.accuracy.variance == "shifted":
                error = np.maximum(error, self._shifted_mean_error + a.u * np.abs(self.mu))
            error = error + (self.s + 2) * a.eta
        if self.saved:
            error = error + a.u_data * (np.abs(self.mu) + error) + a.eta_data
        return error

    @cached_property
    def _farthest(self) -> Array:
        return np.abs(self.d).max(axis=1, keepdims=True)

    @cached_property
    def _shifted_mean_error(self) -> Array:
        """The error of mean(x - c) for the worst element c of the row (A6)."""
        spread = mean(np.abs(self.d)) + self._farthest
        return self.arithmetic.u * ((self.s + 2) * spread + self._farthest)

    @property
    def deviation_roundings(self) -> float:
        """The roundings of a variance that is formed from deviations, in units of u (A4)."""
        return self.s + 8 + 12 * float(np.sqrt(max(self.n - 2, 0)))

    @cached_property
    def variance_error(self) -> Array:
        """E_v (A4 centred, A5 one-pass, A6 shifted; A35 of the mean square)."""
        u, eta = self.arithmetic.u, self.arithmetic.eta
        if self.given_variance is not None:
            return np.zeros_like(self.v)
        if not self.centred:
            return u * (self.s + 8) * self.v + (self.n + 2) * eta
        e, v = self.mean_error, self.v
        sigma = np.sqrt(v)
        centred = (
            u * self.deviation_roundings * (v + e * e)
            + e * e
            + 2 * sigma * (u * self.partial_mean_factor * mean(np.abs(self.x)) + self.s * eta)
            + (self.n + 2 + self.depth) * eta
        )
        if self.arithmetic.accuracy.variance == "one-pass":
            m = np.abs(self.mu)
            passed = u * ((self.s + 4) * (v + m * m) + m * m) + 2 * m * e + e * e + (self.n + 2) * eta
            return np.maximum(passed, centred)
        if self.arithmetic.accuracy.variance == "shifted":
            far, e = self._farthest, self._shifted_mean_error
            passed = u * ((self.s + 5) * (v + far * far) + far * far) + 2 * far * e + e * e + (self.n + 2) * eta
            return np.maximum(passed, centred)
        return centred

    @cached_property
    def _root_errors(self) -> tuple[Array, Array]:
        """How far r may be above and below, relative to r (A7); exact to all orders, infinite where w may reach 0."""
        a = self.arithmetic
        with np.errstate(all="ignore"):
            missing = (np.minimum(self.v, self.variance_error) + 2 * a.u * self.w + 2 * a.eta) / self.w
            excess = (self.variance_error + 2 * a.u * (self.w + self.variance_error) + 2 * a.eta) / self.w
            high = np.expm1(-np.log1p(-np.minimum(missing, 1)) / 2 + np.log1p(4 * a.u))
            low = -np.expm1(-np.log1p(excess) / 2 + np.log1p(-4 * a.u))
        return self._root_stored(high), self._root_stored(low)

    def _root_stored(self, error: Array) -> Array:
        a = self.arithmetic
        return error * (1 + a.u_data) + a.u_data + a.eta_data / self.r if self.saved else error

    @cached_property
    def rho(self) -> Array:
        """The larger of the two root errors (A7)."""
        return np.maximum(*self._root_errors)

    @cached_property
    def r_low(self) -> Array:
        """The smallest r' of an algorithm."""
        return self.r * (1 - self._root_errors[1])

    @cached_property
    def r_high(self) -> Array:
        """r+ = r (1 + rho)."""
        return self.r * (1 + self.rho)

    @cached_property
    def magnitude(self) -> Array:
        """|x| + |mu| + E_mu: the sizes that a folded form x*a + b adds up before they cancel."""
        return np.abs(self.x) + np.abs(self.mu) + self.mean_error

    @property
    def folded(self) -> bool:
        """Whether the class allows x*a + b; without a mean there is no b."""
        return self.centred and self.arithmetic.accuracy.affine == "folded"

    @cached_property
    def xh_error(self) -> Array:
        """X, the largest error of the normalised value (A8)."""
        a = self.arithmetic
        error = (
            self.r_high * self.mean_error * (1 + 2 * a.u)
            + 2 * a.u * (self.r_high * np.abs(self.d))  # u d alone would underflow in float64
            + np.abs(self.xh) * self.rho
            + a.eta
            + 3 * self.r_high * a.flush
        )
        if self.folded:
            error = error + 3 * a.u * (self.r_high * self.magnitude) + a.eta * (self.magnitude + 2)
        return error

    @cached_property
    def xh_high(self) -> Array:
        """The largest |xh| that an implementation can work with (A17)."""
        error = self.xh_error
        if self.folded:  # sums of h*x minus mu times sums of h, as in the first-order gradient (A11)
            error = error + self.arithmetic.u * (self.s + 5) * (self.r_high * self.magnitude)
        return np.abs(self.xh) + error


def rounded(error: Array, exact: Array, u: float, eta: float) -> Array:
    """Return the envelope of a result stored in a format: its error plus one rounding (A9)."""
    bound = (error + u * (np.abs(exact) + error) + eta) * EVALUATION_FACTOR
    return np.where(np.isnan(error), np.inf, bound)  # infinite rho times 0: the error is unknown
