"""The exact values in plain float64: exact enough wherever the data is narrower than float64.

Two passes in float64, with the mean refined once. The error is bounded by the envelope's own formula at
u = 2^-53, which is at most 2^-29 of the envelope of float32 and narrower formats (spec/accuracy.md, A18).
It costs a tenth of the double-double evaluation, which only float64 data needs.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from .double_double import DD
from .envelope import OperatorEnvelope, affine_rows, in_shape
from .envelope_rows import Array, mean


def _dd(values: Array) -> DD:
    return DD(values, np.zeros_like(values))


@attrs.frozen(slots=False, eq=False)
class Float64Values:
    """The values of one call, computed on the rows of its envelope."""

    envelope: OperatorEnvelope

    @cached_property
    def _parts(self):
        forward, layout = self.envelope.forward, self.envelope.layout
        return (
            forward.rows,
            forward.gamma,
            forward.beta,
            forward.inference,
            layout,
        )

    def _project(self, z: Array) -> Array:
        rows, *_, inference, _ = self._parts
        if inference:
            return z
        return (z - mean(z) if rows.centred else z) - rows.xh * mean(z * rows.xh)

    def _data(self, rows: Array) -> DD:
        return _dd(np.array(in_shape(self._parts[-1], rows)))

    def _parameter(self, values: Array) -> DD:
        return _dd(self._parts[-1].to_parameter_shape(values))

    def y(self) -> DD:
        """gamma xhat + beta."""
        rows, gamma, beta, *_ = self._parts
        with np.errstate(all="ignore"):
            return self._data(gamma * rows.xh + beta)

    def running(self, old: Array, momentum: float, *, variance: bool, bessel: bool) -> DD:
        """(1 - m) old + m statistic, shape (channels,)."""
        rows = self._parts[0]
        new = rows.mu[:, 0]
        if variance:
            new = rows.v[:, 0] * (rows.n / (rows.n - 1) if bessel and rows.n > 1 else 1.0)
        return _dd((1 - momentum) * old.astype(np.float64) + momentum * new)

    def vjp(self, g: Array) -> tuple[DD, DD, DD]:
        """dx, dgamma and dbeta."""
        rows, *_, layout = self._parts
        of_rows = layout.rows(g.astype(np.float64))
        with np.errstate(all="ignore"):
            return (
                self.dx(g),
                self._parameter(layout.total(of_rows * rows.xh)),
                self._parameter(layout.total(of_rows)),
            )

    def dx(self, g: Array) -> DD:
        """r P(gamma g)."""
        rows, gamma, *_, layout = self._parts
        with np.errstate(all="ignore"):
            return self._data(rows.r * self._project(gamma * layout.rows(g.astype(np.float64))))

    def jvp(self, tx: Array, tgamma: Array | None, tbeta: Array | None) -> DD:
        """gamma r P tx + tgamma xhat + tbeta."""
        rows, gamma, *_, layout = self._parts
        tx = layout.rows(tx.astype(np.float64))
        with np.errstate(all="ignore"):
            moved = gamma * rows.r * self._project(tx)
            return self._data(moved + affine_rows(layout, tgamma, 0.0) * rows.xh + affine_rows(layout, tbeta, 0.0))

    def jvp_jvp(self, tx: Array, tgamma: Array | None, sx: Array, sgamma: Array | None) -> DD:
        """The derivative of the tangent of y in the direction s."""
        rows, gamma, _, inference, layout = self._parts
        tx, sx = layout.rows(tx.astype(np.float64)), layout.rows(sx.astype(np.float64))
        xh, r = rows.xh, rows.r
        with np.errstate(all="ignore"):
            pt, ps = self._project(tx), self._project(sx)
            moved = affine_rows(layout, tgamma, 0.0) * (r * ps) + affine_rows(layout, sgamma, 0.0) * (r * pt)
            if not inference:
                inner = xh * mean(tx * ps) + mean(tx * xh) * ps + mean(sx * xh) * pt
                moved = moved - gamma * (r * r * inner)
        return self._data(np.broadcast_to(moved, xh.shape))

    def vjp_vjp(self, g: Array, a: Array, b: Array | None, c: Array | None) -> tuple[DD, DD, DD]:
        """x_bar, gamma_bar and g_bar."""
        rows, gamma, _, inference, layout = self._parts
        g, a = layout.rows(g.astype(np.float64)), layout.rows(a.astype(np.float64))
        b_rows, c_rows, xh, r = affine_rows(layout, b, 0.0), affine_rows(layout, c, 0.0), rows.xh, rows.r
        h = gamma * g
        with np.errstate(all="ignore"):
            pa = self._project(a)
            x_bar = r * self._project(b_rows * g)
            if not inference:
                inner = xh * mean(h * pa) + mean(a * xh) * self._project(h) + mean(h * xh) * pa
                x_bar = x_bar - r * r * inner
            gamma_bar = layout.total(g * r * pa)
            g_bar = gamma * r * pa + b_rows * xh + c_rows
        return self._data(x_bar), self._parameter(gamma_bar), self._data(np.broadcast_to(g_bar, xh.shape))
