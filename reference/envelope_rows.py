"""The error envelope on rows: how far a sound algorithm can be from the exact value.

A row is one normalised group: a LayerNorm group, or a BatchNorm channel over all other axes. Every
formula carries its number on the page ``spec/accuracy.md``, which derives it; the names are those
of the page. All quantities are float64 arrays that broadcast against (rows, n).
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from .accuracy import Arithmetic

Array = NDArray[np.float64]

#: What the envelope's own evaluation in float64 costs, and the exact values' error of at most 2^-29 of
#: the envelope where they too are evaluated in float64 (A18).
EVALUATION = 1 + 2.0**-20


def mean(z: Array) -> Array:
    """Return the mean over each row, as a column."""
    return z.mean(axis=1, keepdims=True)


@attrs.frozen(slots=False, eq=False)
class Rows:
    """The statistics of each row and the largest errors a sound algorithm makes in them."""

    #: The data, exactly as given, shape (rows, n).
    x: Array
    eps: float
    arithmetic: Arithmetic
    #: In inference, the given mean and variance, columns of shape (rows, 1); else None.
    given_mean: Array | None = None
    given_variance: Array | None = None

    @property
    def saved(self) -> bool:
        """Whether the batch statistics are rounded to the data's format in between (class H2)."""
        return self.arithmetic.saves_statistics and self.given_mean is None

    @property
    def n(self) -> int:
        return self.x.shape[1]

    @property
    def s(self) -> int:
        """n - 1: a sum of n numbers in any order errs by at most (n-1) u sum|t| (A1)."""
        return self.n - 1

    @property
    def depth(self) -> float:
        """log2(n): how often one value can be in the smaller part of a merge (A3)."""
        return float(np.log2(self.n))

    @cached_property
    def wandering(self) -> float:
        """W: how far the errors of partial means move a merged variance, in u sigma mean|x| (A4)."""
        if self.n < 2:
            return 0.0
        streamed = np.arange(2, self.n)
        doubled = 2.0 ** np.arange(1, np.ceil(np.log2(self.n)))
        return float(np.sqrt(self.n / streamed - 1).sum() + 3 * np.sqrt(self.n / doubled - 1).sum() + np.sqrt(self.n))

    @cached_property
    def mu(self) -> Array:
        if self.given_mean is not None:
            return self.given_mean
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
        if self.given_mean is not None:
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
        """Error of mean(x - c) about the worst element c of the row (A6)."""
        spread = mean(np.abs(self.d)) + self._farthest
        return self.arithmetic.u * ((self.s + 2) * spread + self._farthest)

    @cached_property
    def variance_error(self) -> Array:
        """E_v (A4 centred, A5 one-pass, A6 shifted)."""
        u, eta = self.arithmetic.u, self.arithmetic.eta
        if self.given_variance is not None:
            return np.zeros_like(self.v)
        e, v = self.mean_error, self.v
        sigma = np.sqrt(v)
        centred = (
            u * (self.s + 8 + 12 * np.sqrt(max(self.n - 2, 0))) * (v + e * e)
            + e * e
            + 2 * sigma * (u * self.wandering * mean(np.abs(self.x)) + self.s * eta)
            + (3 + self.depth) * eta
        )
        if self.arithmetic.accuracy.variance == "one-pass":
            m = np.abs(self.mu)
            passed = u * ((self.s + 4) * (v + m * m) + m * m) + 2 * m * e + e * e + 3 * eta
            return np.maximum(passed, centred)
        if self.arithmetic.accuracy.variance == "shifted":
            far, e = self._farthest, self._shifted_mean_error
            passed = u * ((self.s + 5) * (v + far * far) + far * far) + 2 * far * e + e * e + 3 * eta
            return np.maximum(passed, centred)
        return centred

    @cached_property
    def rho(self) -> Array:
        """Largest relative error of r (A7), finite and not first order; inf where w may reach 0."""
        a = self.arithmetic
        with np.errstate(all="ignore"):
            missing = (np.minimum(self.v, self.variance_error) + 2 * a.u * self.w + 2 * a.eta) / self.w
            excess = (self.variance_error + 2 * a.u * (self.w + self.variance_error) + 2 * a.eta) / self.w
            high = np.expm1(-np.log1p(-np.minimum(missing, 1)) / 2 + np.log1p(4 * a.u))
            low = -np.expm1(-np.log1p(excess) / 2 + np.log1p(-4 * a.u))
        rho = np.maximum(high, low)
        if self.saved:
            rho = rho * (1 + a.u_data) + a.u_data + a.eta_data / self.r
        return rho

    @cached_property
    def r_high(self) -> Array:
        """r+ = r (1 + rho)."""
        return self.r * (1 + self.rho)

    @cached_property
    def reach(self) -> Array:
        """|x| + |mu| + E_mu: what a folded form x*a + b adds up before it cancels."""
        return np.abs(self.x) + np.abs(self.mu) + self.mean_error

    @cached_property
    def squares_in_range(self) -> NDArray[np.bool_]:
        """Whether the sum of squares cannot overflow: n max(x^2) <= largest/4 (R1)."""
        with np.errstate(over="ignore"):
            highest = np.abs(self.x).max(axis=1, keepdims=True, initial=0.0)
            return self.n * highest**2 <= self.arithmetic.largest / 4

    @cached_property
    def stored_in_range(self) -> NDArray[np.bool_]:
        """Whether the 16-bit format can hold what the class stores in it: xhat, and r too (R3)."""
        a, inside = self.arithmetic, np.ones(self.mu.shape, bool)
        if a.narrow and a.accuracy.storage != "H0":
            highest = np.abs(self.xh).max(axis=1, keepdims=True, initial=0.0)
            inside = 2 * highest <= a.largest_data
        if a.narrow and a.accuracy.storage in ("H2", "native"):
            inside = inside & (2 * self.r <= a.largest_data)
        return inside

    def gain_in_range(self, gamma: Array) -> NDArray[np.bool_]:
        """Whether the format can hold gamma r too, where the class rounds every product (R3); gamma by rows."""
        a = self.arithmetic
        if not (a.narrow and a.accuracy.storage == "native"):
            return np.ones(self.mu.shape, bool)
        highest = np.abs(gamma).max(axis=1, keepdims=True, initial=0.0)
        return 2 * highest * self.r <= a.largest_data

    @cached_property
    def cube_in_range(self) -> NDArray[np.bool_]:
        """Whether r^3, which gradients of 1/sqrt(w) form, is normal with room to spare on both sides (R2).

        2^10 times the smallest normal number: the factors that multiply r^3 are formed first, last or
        in between, and each order loses a few bits below it. 2^-6 of the largest number: what multiplies r^3
        contains x - mu, which is the smaller the larger r is, and gamma g.
        """
        a = self.arithmetic
        with np.errstate(over="ignore"):
            cube = self.r**3
        return (cube >= 2.0**10 * a.smallest_normal) & (cube <= 2.0**-6 * a.largest)

    @property
    def folded(self) -> bool:
        return self.arithmetic.accuracy.affine == "folded"

    @cached_property
    def xh_error(self) -> Array:
        """X, the largest error of the normalised value (A8)."""
        a = self.arithmetic
        error = (
            self.r_high * (self.mean_error * (1 + 2 * a.u) + 2 * a.u * np.abs(self.d))
            + np.abs(self.xh) * self.rho
            + a.eta
        )
        if self.folded:
            error = error + 3 * a.u * self.reach * self.r_high + a.eta * (self.reach + 2)
        return error


def rounded(error: Array, exact: Array, u: float, eta: float) -> Array:
    """Return the envelope of a result stored in a format: its error, and one rounding of it (A9)."""
    bound = (error + u * (np.abs(exact) + error) + eta) * EVALUATION
    return np.where(np.isnan(error), np.inf, bound)  # an infinite rho times 0: nothing is known


@attrs.frozen(slots=False, eq=False)
class RowEnvelope:
    """The envelope of every output and derivative of the normalisation of rows."""

    rows: Rows
    #: gamma and beta, broadcasting against (rows, n): (1, n) for LayerNorm, (rows, 1) for BatchNorm.
    gamma: Array
    beta: Array
    #: The axis that the parameter gradients sum over: 0 for LayerNorm (over rows), 1 for BatchNorm.
    parameter_axis: int

    @property
    def arithmetic(self) -> Arithmetic:
        return self.rows.arithmetic

    @property
    def inference(self) -> bool:
        return self.rows.given_mean is not None

    def y(self) -> Array:
        """Envelope of y (A10)."""
        a, rows = self.arithmetic, self.rows
        y = self.gamma * rows.xh + self.beta
        scaled = np.abs(self.gamma) * (np.abs(rows.xh) + rows.xh_error)
        error = np.abs(self.gamma) * rows.xh_error + a.u * (scaled + 2 * np.abs(y)) + (2 + rows.r_high) * a.eta
        if rows.folded:
            error = (
                error
                + 2 * a.u * (np.abs(self.beta) + np.abs(self.gamma) * rows.reach * rows.r_high)
                + a.eta * (rows.reach + 2)
            )
        if self.stores_between:
            error = error + a.u_data * (2 * scaled + np.abs(y)) + (2 + np.abs(self.gamma)) * a.eta_data
        return rounded(error, y, a.u_data, a.eta_data)

    @property
    def stores_between(self) -> bool:
        """Whether intermediate values too are rounded to the data's 16 bits (H1, H2)."""
        return self.arithmetic.narrow and self.arithmetic.accuracy.storage in ("H1", "H2")

    def projection(self, h: Array, rows: Rows) -> tuple[Array, Array, Array]:
        """Return P h = h - mean(h) - xh mean(h xh), its error, and the sum of its terms' sizes (A11)."""
        a, s = self.arithmetic, rows.s
        size, xh, xe = np.abs(h), np.abs(rows.xh), rows.xh_error
        c1, c2 = mean(h), mean(h * rows.xh)
        e1 = a.u * (s + 3) * mean(size) + 2 * a.eta
        e2 = (
            rows.r_high * (rows.mean_error * np.abs(c1) + 2 * a.u * mean(size * np.abs(rows.d)))
            + rows.rho * np.abs(c2)
            + a.u * (s + 4) * mean(size * (xh + xe))
            + rows.mean_error * rows.r_high * a.u * (s + 2) * mean(size)
            + (3 + 2 * rows.r_high) * a.eta
        )
        if rows.folded:
            e2 = e2 + (a.u * (s + 5) * mean(size * rows.reach) + 2 * a.eta) * rows.r_high
        c2_high = np.abs(c2) + e2
        sizes = size + np.abs(c1) + xh * np.abs(c2)
        error = 2 * a.u * size + e1 + xe * c2_high + xh * e2 + 3 * a.u * sizes + 4 * a.eta
        if rows.folded:
            error = error + (4 * a.u * rows.r_high + a.eta) * rows.reach * c2_high
        return h - c1 - rows.xh * c2, error, sizes

    def dx(self, g: Array) -> Array:
        """Envelope of dx (A12 training, A15 inference)."""
        a, rows = self.arithmetic, self.rows
        h = self.gamma * g
        if self.inference:
            dx = h * rows.r
            error = np.abs(dx) * (rows.rho + 4 * a.u * (1 + rows.rho)) + (3 + 2 * rows.r_high) * a.eta
            if self.stores_between:
                error = error + 2 * a.u_data * (1 + rows.rho) * np.abs(dx) + 2 * (1 + rows.r_high) * a.eta_data
            return rounded(error, dx, a.u_data, a.eta_data)
        t, te, sizes = self.projection(h, rows)
        dx = rows.r * t
        error = rows.r_high * te + np.abs(dx) * (rows.rho + 2 * a.u) + 3 * a.eta
        error = error + a.eta * (np.abs(rows.d) + rows.mean_error)
        if rows.folded:
            error = error + a.eta * (rows.reach + 1)
        if self.arithmetic.accuracy.variance == "shifted":  # the gradient of the shift returns to one element
            error = error + a.u * (rows.s + 4) * rows.r_high * sizes.sum(axis=1, keepdims=True)
        if self.stores_between:
            stored = np.abs(h) + mean(np.abs(h)) + np.abs(rows.xh) * mean(np.abs(h * rows.xh))
            error = error + a.u_data * rows.r_high * (sizes + stored)
            error = error + (3 + rows.r_high * (3 + np.abs(rows.xh))) * a.eta_data
        if a.saves_statistics:
            c2 = np.abs(mean(h * rows.xh))
            error = error + 4 * a.u_data * rows.r_high * (sizes + rows.r_high * rows.reach * c2)
        return rounded(error, dx, a.u_data, a.eta_data)

    def dgamma(self, g: Array) -> Array:
        """Envelope of dgamma, one value a column for LayerNorm, a row for BatchNorm (A13)."""
        a, rows, axis = self.arithmetic, self.rows, self.parameter_axis
        count = rows.x.shape[axis]
        size = np.abs(g)
        dgamma = (g * rows.xh).sum(axis=axis)
        terms = (size * (np.abs(rows.xh) + rows.xh_error)).sum(axis=axis)
        if axis == 0:
            error = (size * rows.xh_error).sum(axis=0) + a.u * (count + 2) * terms
            error = error + a.eta * (2 + rows.r_high).sum() * np.ones_like(error)
        else:
            error = (
                rows.r_high
                * (
                    rows.mean_error * np.abs(g.sum(axis=1, keepdims=True))
                    + 2 * a.u * (size * np.abs(rows.d)).sum(axis=1, keepdims=True)
                    + rows.mean_error * a.u * (rows.s + 2) * size.sum(axis=1, keepdims=True)
                )
            )[:, 0]
            error = error + rows.rho[:, 0] * np.abs(dgamma) + a.u * (rows.s + 4) * terms
            error = error + rows.n * a.eta * (2 + rows.r_high[:, 0])
            if rows.folded:
                folded = (size * rows.reach).sum(axis=1, keepdims=True)
                error = error + (rows.r_high * (a.u * (rows.s + 5) * folded + rows.n * a.eta))[:, 0]
        if self.stores_between:  # xhat is stored, and its product with g
            error = error + 2 * a.u_data * terms + (2 * count + size.sum(axis=axis)) * a.eta_data
        if a.saves_statistics:
            error = error + a.u_data * (count + 2) * terms + count * a.eta_data
        return rounded(error, dgamma, a.u_parameter, a.eta_parameter)

    def dbeta(self, g: Array) -> Array:
        """Envelope of dbeta (A14)."""
        a, axis = self.arithmetic, self.parameter_axis
        g = np.broadcast_to(g, self.rows.x.shape)
        count, total = g.shape[axis], np.abs(g).sum(axis=axis)
        error = a.u * max(count - 1, 0) * total + 2 * a.eta
        if a.saves_statistics:
            error = error + a.u_data * max(count - 1, 0) * total + count * a.eta_data
        return rounded(error, g.sum(axis=axis), a.u_parameter, a.eta_parameter)

    def running(self, old: Array, momentum: float, *, variance: bool, bessel: bool) -> Array:
        """Envelope of a running statistic, shape (rows,) (A16)."""
        a, rows = self.arithmetic, self.rows
        if variance:
            factor = rows.n / (rows.n - 1) if bessel and rows.n > 1 else 1.0
            new = factor * rows.v[:, 0]
            error = factor * rows.variance_error[:, 0] + 3 * a.u * new * (factor != 1.0)
        else:
            new, error = rows.mu[:, 0], rows.mean_error[:, 0]
        value = (1 - momentum) * old + momentum * new
        share = max(momentum, 1 - momentum)
        error = (
            momentum * error + 4 * a.u * share * (np.abs(old) + np.abs(new) + error) + a.u * np.abs(value) + 3 * a.eta
        )
        if a.saves_statistics:  # the update too is formed in 16 bits
            error = error + 4 * a.u_parameter * share * (np.abs(old) + np.abs(new) + error)
            error = error + a.u_parameter * np.abs(value) + 3 * a.eta_parameter
            # A batch statistic beyond the format that it is kept in is not judged (R3).
            error = np.where(2 * np.abs(new) <= a.largest_data, error, np.inf)
        return rounded(error, value, a.u_parameter, a.eta_parameter)
