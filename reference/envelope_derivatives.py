"""The envelope of forward-mode and second-order derivatives, by propagated majorants.

There is no closed formula for these. Every implementation evaluates some arrangement of one polynomial in
r, xh, the cotangents and the tangents. Its majorant P is the same polynomial with every term taken positive,
and bounds them all: arguments off by at most delta move the value by at most P(|z| + delta) - P(|z|), and
k roundings on each term add at most k u P(|z| + delta). See spec/accuracy.md (A17).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from .accuracy import Arithmetic
from .envelope_range import Range
from .envelope_results import RowEnvelope
from .envelope_rows import Array, RowBounds, mean, rounded


@attrs.frozen(slots=False, eq=False)
class DerivativeEnvelope:
    """Envelopes of the jvp and of the vjp of the vjp of the normalisation of rows."""

    forward: RowEnvelope

    @cached_property
    def arithmetic(self) -> Arithmetic:
        return self.forward.arithmetic.composed

    @cached_property
    def rows(self) -> RowBounds:
        """The rows in the arithmetic in which derivatives are composed."""
        return attrs.evolve(self.forward.rows, arithmetic=self.arithmetic)

    @cached_property
    def _high(self) -> tuple[Array, Array]:
        """The largest |xh| and r that an implementation can work with."""
        return self.rows.xh_high, self.rows.r_high

    def _envelope(self, majorant: Callable[[Array, Array], Array], terms: int, underflow: Array | float) -> Array:
        """Return majorant(high) - majorant(exact) + roundings, for a result in the data's format."""
        a, rows = self.arithmetic, self.rows
        high = majorant(*self._high)
        exact = majorant(np.abs(rows.xh), rows.r)
        # At most three sums nest (in xh * mean(h P a)), each of n terms: 3 s roundings. Forming a term, dividing its
        # means by n and adding the terms up takes at most 24 more.
        return high - exact + a.u * (3 * rows.s + 24 + terms) * high + a.eta * underflow

    def _judged(self, high: Array) -> NDArray[np.bool_]:
        """Whether, in each row, the format holds a sum of n terms and the r^3 of the chain rule (R2, R4)."""
        rows, largest, within = self.rows, self.arithmetic.largest, Range(self.rows)
        with np.errstate(over="ignore"):
            terms = rows.n * high.max(axis=1, keepdims=True, initial=1.0) * np.maximum(1.0, rows.r_high**3)
        inside = within.squares & (terms < largest / 4)
        return inside if self.forward.inference else inside & within.r_cubed

    def _projected(self, z: Array, xh: Array) -> Array:
        """Majorant of P z; in inference the statistics are constants and P is the identity."""
        z = np.abs(z)
        if self.forward.inference:
            return z
        return z + self.rows.centred * mean(z) + xh * mean(z * xh)

    def _underflow(self, *factors: Array) -> Array:
        """Underflows of a term: each is multiplied by at most the term's remaining factors."""
        xh, r = self._high
        size = 8 * (1 + r) ** 2 * (1 + xh) ** 2
        for factor in factors:
            size = size * (1 + np.abs(factor).max(axis=1, keepdims=True, initial=0))
        return size

    def jvp(self, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        """Envelope of gamma r P tx + tgamma xh + tbeta."""
        f = self.forward

        def majorant(xh: Array, r: Array) -> Array:
            moved = np.abs(f.gamma) * r * self._projected(tx, xh)
            return moved + np.abs(tgamma) * xh + np.abs(tbeta)

        error = self._envelope(majorant, 0, self._underflow(f.gamma * tx))
        error = np.where(self._judged(majorant(*self._high)), error, np.inf)
        return rounded(error, self._value(majorant), self.arithmetic.u_data, self.arithmetic.eta_data)

    def jvp_jvp(self, tx: Array, tgamma: Array, sx: Array, sgamma: Array) -> Array:
        """Envelope of tgamma r P sx + sgamma r P tx - gamma r^2 [xh mean(tx P sx) + m_t P sx + m_s P tx]."""
        f = self.forward

        def majorant(xh: Array, r: Array) -> Array:
            pt, ps = self._projected(tx, xh), self._projected(sx, xh)
            moved = r * (np.abs(tgamma) * ps + np.abs(sgamma) * pt)
            if f.inference:
                return moved
            mt, ms = mean(np.abs(tx) * xh), mean(np.abs(sx) * xh)
            return moved + np.abs(f.gamma) * r * r * (xh * mean(np.abs(tx) * ps) + mt * ps + ms * pt)

        error = self._envelope(majorant, 0, self._underflow(f.gamma * tx, sx, tgamma, sgamma))
        error = np.where(self._judged(majorant(*self._high)), error, np.inf)
        return rounded(error, self._value(majorant), self.arithmetic.u_data, self.arithmetic.eta_data)

    def vjp_vjp(self, g: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        """Envelopes of (x_bar, gamma_bar, g_bar); gamma_bar summed as the parameter gradients are."""
        f, layout = self.forward, self.forward.layout
        h, bg = f.gamma * g, b * g

        def of_x(xh: Array, r: Array) -> Array:
            moved = r * self._projected(bg, xh)
            if f.inference:
                return moved
            ph, pa = self._projected(h, xh), self._projected(a, xh)
            inner = mean(np.abs(h) * pa)
            mh, ma = mean(np.abs(h) * xh), mean(np.abs(a) * xh)
            return moved + r * r * (xh * inner + ma * ph + mh * pa)

        def of_gamma(xh: Array, r: Array) -> Array:
            return layout.total(np.abs(g) * r * self._projected(a, xh))

        def of_g(xh: Array, r: Array) -> Array:
            return np.abs(f.gamma) * r * self._projected(a, xh) + np.abs(b) * xh + np.abs(c)

        ar = self.arithmetic
        under = self._underflow(h + bg, a)
        x_bar = self._envelope(of_x, 0, under)
        gamma_bar = self._envelope(of_gamma, layout.sharing, layout.total(under))
        g_bar = self._envelope(of_g, 0, under)
        judged = self._judged(of_x(*self._high) + of_g(*self._high))
        x_bar, g_bar = np.where(judged, x_bar, np.inf), np.where(judged, g_bar, np.inf)
        all_judged = layout.stretches(np.broadcast_to(judged, self.rows.x.shape)).all(axis=(0, 2))
        gamma_bar = np.where(all_judged, gamma_bar, np.inf)
        value = self._value(of_gamma)
        if ar.u < ar.u_parameter:  # gamma is used in the call and in its gradient: each use has a share of its own
            gamma_bar = gamma_bar + ar.u_parameter * (value + gamma_bar) + 2 * ar.eta_parameter
            # Shares that overflow with opposite signs are NaN together. Only 16-bit data has a narrower gamma: its own.
            gamma_bar = np.where(value + gamma_bar < ar.largest_data, gamma_bar, np.inf)
        return (
            rounded(x_bar, self._value(of_x), ar.u_data, ar.eta_data),
            rounded(gamma_bar, value, ar.u_parameter, ar.eta_parameter),
            rounded(g_bar, self._value(of_g), ar.u_data, ar.eta_data),
        )

    def _value(self, majorant: Callable[[Array, Array], Array]) -> Array:
        """An upper bound of the exact value: its majorant."""
        return majorant(np.abs(self.rows.xh), self.rows.r)
