"""The envelope of every result of normalising rows (A10 to A16), given the errors of the rows' statistics."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from ..spec.layout import Layout
from .accuracy import Arithmetic
from .envelope_range import Range
from .envelope_rows import Array, RowBounds, mean, rounded


@attrs.frozen(eq=False)
class ParameterSums:
    """
    The sums from which dgamma, dbeta and their envelopes are computed, one value per parameter.

    They are sums over groups. The sums of blocks of groups add up to those of all groups if each block has all
    parameters.
    """

    arithmetic: Arithmetic
    #: The number of terms in a parameter's gradient, including those of other blocks.
    count: int
    #: The largest number that the class stores on the way (Range.stored_limit); infinite if it stores none.
    stored_limit: float
    #: Whether every group has all of gamma.
    along_rows: bool
    #: The exact sums of g xhat and of g.
    dgamma: Array
    dbeta: Array
    #: The sums of |g| (|xhat| + X) and of |g|.
    terms: Array
    sizes: Array
    #: The largest of dgamma's terms, by size.
    widest: Array
    #: The errors of dgamma's terms before they are added up, and those by underflow.
    error: Array
    underflow: Array | float
    #: How large dgamma's terms may become in sum before they cancel (R6).
    reach: Array

    def __add__(self, other: ParameterSums) -> ParameterSums:
        summed = ("dgamma", "dbeta", "terms", "sizes", "error", "underflow", "reach")
        added = {name: getattr(self, name) + getattr(other, name) for name in summed}
        return attrs.evolve(self, widest=np.maximum(self.widest, other.widest), **added)

    def dgamma_bound(self) -> Array:
        """Envelope of dgamma (A13)."""
        a, count, terms = self.arithmetic, self.count, self.terms
        error = self.error + a.u * (count + (2 if self.along_rows else 3)) * terms
        error = error + self.underflow
        if self.stored_limit < np.inf:  # xhat and its product with g are stored
            error = error + 2 * a.u_data * terms + (2 * count + self.sizes) * a.eta_data
        stored = self.widest
        if a.saves_statistics:  # they are added up in 16 bits
            error = error + a.u_data * (count + 2) * terms + count * a.eta_data
            stored = terms
        error = np.where((self.reach <= a.largest / 4) & (stored <= self.stored_limit), error, np.inf)
        return rounded(error, self.dgamma, a.u_parameter, a.eta_parameter)

    def dbeta_bound(self) -> Array:
        """Envelope of dbeta (A14)."""
        a, count, total = self.arithmetic, self.count, self.sizes
        error = a.u * max(count - 1, 0) * total + 2 * a.eta + 2 * count * a.flush
        if a.saves_statistics:
            error = error + a.u_data * max(count - 1, 0) * total + count * a.eta_data
            error = np.where(total <= self.stored_limit, error, np.inf)
        error = np.where(total <= a.largest / 4, error, np.inf)  # R6
        return rounded(error, self.dbeta, a.u_parameter, a.eta_parameter)


@attrs.frozen(slots=False, eq=False)
class RowEnvelope:
    """The envelope of every output and derivative of normalising rows."""

    rows: RowBounds
    #: gamma and beta, broadcasting against (rows, n).
    gamma: Array
    beta: Array
    layout: Layout

    @cached_property
    def range(self) -> Range:
        """The range in which the plain formulas neither overflow nor underflow."""
        return Range(self.rows)

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
        error = np.abs(self.gamma) * rows.xh_error + a.u * (scaled + 2 * np.abs(y))
        error = error + (2 + rows.r_high + self._deviation) * a.eta + (np.abs(rows.xh) + rows.xh_error) * a.flush
        if rows.folded:
            error = (
                error
                + 2 * a.u * (np.abs(self.beta) + np.abs(self.gamma) * rows.magnitude * rows.r_high)
                + a.eta * (rows.magnitude + 2 + rows.r_high)
                + 2 * a.flush
            )
        if rows.adds_h1_terms:
            error = error + a.u_data * (2 * scaled + np.abs(y)) + (2 + np.abs(self.gamma)) * a.eta_data
        return rounded(error, y, *a.of_y)

    @property
    def _deviation(self) -> Array:
        """The largest |x - mu| that an algorithm works with."""
        return np.abs(self.rows.d) + self.rows.mean_error

    @property
    def _gain(self) -> Array:
        """1 + |gamma|, of x's shape: what multiplies an underflow, since gamma may be applied before or after (A11)."""
        return np.broadcast_to(1 + np.abs(self.gamma), self.rows.x.shape)

    def projection(self, g: Array, h: Array) -> tuple[Array, Array, Array]:
        """Return P h = h - mean(h) - xh mean(h xh) of h = gamma g, its error, and the sum of its terms' sizes (A11)."""
        a, rows, s, n = self.arithmetic, self.rows, self.rows.s, self.rows.n
        size, xh, xe = np.abs(h), np.abs(rows.xh), rows.xh_error
        c1, c2 = mean(h), mean(h * rows.xh)
        gain, lost = self._gain, a.flush * (np.abs(self.gamma) + np.abs(g))
        gains = mean(gain)
        e1 = a.u * (s + 3) * mean(size) + ((n + 1) * a.eta + 3 * n * a.flush) * gains + mean(lost)
        if not rows.centred:
            c1 = e1 = np.zeros_like(c1)
        e2 = (
            rows.r_high * (rows.mean_error * np.abs(c1) + 2 * a.u * mean(size * np.abs(rows.d)))
            + rows.rho * np.abs(c2)
            + a.u * (s + 4) * mean(size * (xh + xe))
            + rows.mean_error * rows.r_high * a.u * (s + 2) * mean(size)
            + a.eta * ((n + 2 + (n + 3) * rows.r_high) * gains + mean(size))
            + mean(lost * (xh + xe))
            + 3 * a.flush * (rows.r_high * mean(size) + n * (1 + rows.r_high) * gains)
        )
        if rows.folded:
            apart = a.u * (s + 5) * mean(size * rows.magnitude) + (n + 1) * a.eta * mean(gain * (1 + rows.magnitude))
            if a.flush:
                apart = apart + mean(lost * rows.magnitude)
                apart = apart + a.flush * (mean(size) + 3 * n * mean(gain * (1 + rows.magnitude)))
            e2 = e2 + rows.r_high * apart
        c2_high = np.abs(c2) + e2
        sizes = size + np.abs(c1) + xh * np.abs(c2)
        error = 2 * a.u * size + e1 + xe * c2_high + xh * e2 + 3 * a.u * sizes + (4 * a.eta + 6 * a.flush) * gain + lost
        if rows.folded:
            error = error + (4 * a.u * rows.r_high + a.eta) * rows.magnitude * c2_high
        return h - c1 - rows.xh * c2, error, sizes

    def dx(self, g: Array) -> Array:
        """Envelope of dx (A12 training, A15 inference)."""
        a, rows = self.arithmetic, self.rows
        h = self.gamma * g
        if self.inference:
            dx = h * rows.r
            factors = np.abs(g) + np.abs(self.gamma)
            error = np.abs(dx) * (rows.rho + 4 * a.u * (1 + rows.rho))
            error = error + (3 + 2 * rows.r_high + factors) * a.eta + rows.r_high * factors * a.flush
            if rows.adds_h1_terms:
                error = error + 2 * a.u_data * (1 + rows.rho) * np.abs(dx) + 2 * (1 + rows.r_high) * a.eta_data
            return rounded(error, dx, a.u_data, a.eta_data)
        t, te, sizes = self.projection(g, h)
        dx = rows.r * t
        xh, cotangent = np.abs(rows.xh) + rows.xh_error, np.abs(g)
        without_gain = cotangent + mean(cotangent) + xh * mean(cotangent * xh)
        error = rows.r_high * te + np.abs(dx) * (rows.rho + 2 * a.u)
        of_gain = rows.n + 3 + (2 + 4 / rows.n) * self._deviation
        error = error + a.eta * (self._gain * of_gain + without_gain)
        error = error + a.flush * rows.r_high * without_gain
        if rows.folded:
            error = error + a.eta * self._gain * (2 * rows.magnitude + 1)
        if rows.centred and a.accuracy.variance == "shifted":  # the gradient of the shift is added to one element
            error = error + a.u * (rows.s + 4) * rows.r_high * sizes.sum(axis=1, keepdims=True)
        if rows.adds_h1_terms:
            stored = np.abs(h) + rows.centred * mean(np.abs(h)) + np.abs(rows.xh) * mean(np.abs(h * rows.xh))
            error = error + a.u_data * rows.r_high * (sizes + stored)
            error = error + (3 + rows.r_high * (3 + np.abs(rows.xh))) * a.eta_data
        if a.saves_statistics:
            c2 = np.abs(mean(h * rows.xh))
            error = error + 4 * a.u_data * rows.r_high * (sizes + rows.r_high * rows.magnitude * c2)
        return rounded(error, dx, a.u_data, a.eta_data)

    def parameter_sums(self, g: Array, count: int) -> ParameterSums:
        """The sums behind dgamma, dbeta and their envelopes; `count` is the number of terms per parameter in all."""
        a, rows, layout = self.arithmetic, self.rows, self.layout
        g = np.broadcast_to(g, rows.x.shape)
        size = np.abs(g)
        terms = size * (np.abs(rows.xh) + rows.xh_error)
        underflow = 0.0
        if layout.along_rows:
            error = layout.total(size * rows.xh_error)
            underflow = layout.total(
                a.eta * (2 + rows.r_high + self._deviation)
                + a.flush * (np.abs(rows.xh) + rows.xh_error + 3 + 3 * rows.r_high)
            )
        else:
            error = self._of_stretches(g, count)
        return ParameterSums(
            self.arithmetic,
            count,
            stored_limit=self.range.stored_limit,
            along_rows=layout.along_rows,
            dgamma=layout.total(g * rows.xh),
            dbeta=layout.total(g),
            terms=layout.total(terms),
            widest=layout.stretches(terms).max(axis=(0, 2), initial=0.0),
            sizes=layout.total(size),
            error=error,
            underflow=underflow,
            reach=self.range.reach(g, layout),
        )

    def _of_stretches(self, g: Array, count: int) -> Array:
        """The error of dgamma before the final sum, where several values of a group share a parameter (A13)."""
        a, rows, layout = self.arithmetic, self.rows, self.layout
        length, size = layout.positions, np.abs(g)

        def along(terms: Array) -> Array:
            return layout.stretches(np.broadcast_to(terms, rows.x.shape)).sum(axis=2)

        def of_group(column: Array) -> Array:
            return layout.stretches(np.broadcast_to(column, rows.x.shape)).max(axis=2, initial=0.0)

        r_high, mean_error = of_group(rows.r_high), of_group(rows.mean_error)
        error = r_high * (
            mean_error * np.abs(along(g))
            + 2 * a.u * along(size * np.abs(rows.d))
            + mean_error * a.u * (count + 1) * along(size)
        )
        error = error + of_group(rows.rho) * np.abs(along(g * rows.xh))
        error = error + a.eta * along(2 + rows.r_high + size + self._deviation)
        error = error + a.flush * along(3 * rows.r_high * size + np.abs(rows.xh) + rows.xh_error + 3 + 3 * rows.r_high)
        if rows.folded:
            error = error + r_high * (a.u * (count + 4) * along(size * rows.magnitude) + length * a.eta)
            error = error + r_high * a.flush * along(size + 4 * rows.magnitude + 3)
        return error.sum(axis=0)

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
        if a.saves_statistics:  # the update is formed in 16 bits too
            error = error + 4 * a.u_parameter * share * (np.abs(old) + np.abs(new) + error)
            error = error + a.u_parameter * np.abs(value) + 3 * a.eta_parameter
            # A batch statistic beyond the range of the format that stores it is not judged (R3).
            error = np.where(2 * np.abs(new) <= a.largest_data, error, np.inf)
        return rounded(error, value, a.u_parameter, a.eta_parameter)
