"""The error envelope of the operators: the largest error a sound algorithm can make, per element.

``layer_norm_envelope`` and ``batch_norm_envelope`` lay the data out in rows and give every result back in the
shape of the output it belongs to. See spec/accuracy.md for what is promised and why.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from .accuracy import Arithmetic
from .envelope_derivatives import DerivativeEnvelope
from .envelope_results import RowEnvelope
from .envelope_rows import Array, Rows


def _float64(z: Any) -> Array:
    return np.asarray(z).astype(np.float64)


@attrs.frozen(slots=False, eq=False)
class OperatorEnvelope:
    """The envelope of one call of layer_norm or batch_norm; arrays have the operator's own shapes."""

    forward: RowEnvelope
    derivatives: DerivativeEnvelope
    layout: Layout

    def y(self) -> Array:
        """Envelope of y, shape of x."""
        with np.errstate(all="ignore"):
            return self.layout.data(self.forward.y())

    def gradients(self, g: NDArray[Any]) -> dict[str, Array]:
        """Envelopes of "dx", "dgamma" and "dbeta" for the cotangent g of y, shape of x."""
        rows = self.layout.rows(_float64(g))
        with np.errstate(all="ignore"):
            return {
                "dx": self.layout.data(self.forward.dx(rows)),
                "dgamma": self.layout.parameter(self.forward.dgamma(rows)),
                "dbeta": self.layout.parameter(self.forward.dbeta(rows)),
            }

    def running(self, old_mean: Any, old_variance: Any, momentum: float, *, bessel: bool) -> dict[str, Array]:
        """Envelopes of "new_running_mean" and "new_running_var", shape (channels,)."""
        with np.errstate(all="ignore"):
            return {
                "new_running_mean": self.forward.running(_float64(old_mean), momentum, variance=False, bessel=bessel),
                "new_running_var": self.forward.running(_float64(old_variance), momentum, variance=True, bessel=bessel),
            }

    def jvp(self, tx: Any, tgamma: Any, tbeta: Any) -> Array:
        """Envelope of the forward-mode derivative of y, shape of x."""
        with np.errstate(all="ignore"):
            return self.layout.data(
                self.derivatives.jvp(
                    self.layout.rows(_float64(tx)),
                    self.layout.affine(tgamma, 0.0),
                    self.layout.affine(tbeta, 0.0),
                )
            )

    def jvp_jvp(self, tx: Any, tgamma: Any, sx: Any, sgamma: Any) -> Array:
        """Envelope of the forward-mode derivative of the forward-mode derivative of y, shape of x."""
        with np.errstate(all="ignore"):
            found = self.derivatives.jvp_jvp(
                self.layout.rows(_float64(tx)),
                self.layout.affine(tgamma, 0.0),
                self.layout.rows(_float64(sx)),
                self.layout.affine(sgamma, 0.0),
            )
            return self.layout.data(found)

    def vjp_vjp(self, g: Any, a: Any, b: Any, c: Any) -> dict[str, Array]:
        """Envelopes of the second-order "x", "gamma" and "g" at cotangents (a, b, c)."""
        with np.errstate(all="ignore"):
            x_bar, gamma_bar, g_bar = self.derivatives.vjp_vjp(
                self.layout.rows(_float64(g)),
                self.layout.rows(_float64(a)),
                self.layout.affine(b, 0.0),
                self.layout.affine(c, 0.0),
            )
        return {
            "x": self.layout.data(x_bar),
            "gamma": self.layout.parameter(gamma_bar),
            "g": self.layout.data(g_bar),
        }

    def in_range(
        self, *, gradient: bool = False, gain: bool = False, g: NDArray[Any] | None = None
    ) -> NDArray[np.bool_]:
        """
        Where the class's plain formulas neither overflow nor underflow, shape of x (R1, R2, R3, R6).

        ``gradient``: those of dx, for the cotangent ``g`` where one is given. ``gain``: those in which gamma meets r,
        which are y's and dx's.
        """
        rows, gamma = self.forward.rows, self.forward.gamma
        within = self.forward.range
        inside = within.squares & within.stored
        if gain:
            inside = inside & within.gain(gamma)
            if not gradient:
                inside = inside & within.terms(gamma)
        if gradient:
            inside = inside & within.cube
        if gradient and g is not None:
            inside = inside & within.pulled(np.abs(self.layout.rows(_float64(g))) * np.maximum(1.0, np.abs(gamma)))
        return self.layout.data(np.where(inside, 1.0, np.zeros(rows.x.shape))) > 0

    @property
    def statistics(self) -> Rows:
        """The rows underneath, for laws about the statistics themselves."""
        return self.forward.rows


@attrs.frozen(slots=False)
class Layout:
    """How an operator's arrays map to rows: LayerNorm groups, or BatchNorm channels."""

    shape: tuple[int, ...]
    #: The channel axis for BatchNorm, None for LayerNorm.
    channel: int | None
    #: The shape of gamma and beta.
    parameters: tuple[int, ...]

    def rows(self, z: Array) -> Array:
        if z.shape != self.shape:
            z = np.broadcast_to(z, self.shape)
        if self.channel is not None:
            z = z.transpose(self.to_front)
        return z.reshape(self.rows_shape)

    def data(self, rows: Array) -> Array:
        if rows.shape != self.rows_shape:
            rows = np.broadcast_to(rows, self.rows_shape)
        if self.channel is None:
            return rows.reshape(self.shape)
        moved = tuple(self.shape[axis] for axis in self.to_front)
        return rows.reshape(moved).transpose(self.from_front)

    @cached_property
    def to_front(self) -> tuple[int, ...]:
        """The order of axes that puts the channels first."""
        rest = (axis for axis in range(len(self.shape)) if axis != self.channel)
        return (self.channel or 0, *rest)

    @cached_property
    def from_front(self) -> tuple[int, ...]:
        """The order of axes that puts the channels back."""
        return tuple(self.to_front.index(axis) for axis in range(len(self.shape)))

    def parameter(self, values: Array) -> Array:
        return values.reshape(self.parameters)

    def affine(self, values: Any, default: float) -> Array:
        if values is None:
            return np.full((1, 1), default)
        flat = _float64(values).reshape(-1)
        return flat[None, :] if self.channel is None else flat[:, None]

    @cached_property
    def rows_shape(self) -> tuple[int, int]:
        if self.channel is None:
            n = math.prod(self.parameters)
            return math.prod(self.shape[: len(self.shape) - len(self.parameters)]), n
        count = self.shape[self.channel]
        return count, math.prod(self.shape) // count if count else 0


def _envelope(rows: Rows, layout: Layout, gamma: Any, beta: Any) -> OperatorEnvelope:
    forward = RowEnvelope(
        rows,
        layout.affine(gamma, 1.0),
        layout.affine(beta, 0.0),
        0 if layout.channel is None else 1,
    )
    return OperatorEnvelope(forward, DerivativeEnvelope(forward), layout)


def layer_norm_envelope(
    x: NDArray[Any], gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...], arithmetic: Arithmetic
) -> OperatorEnvelope:
    """Return the envelope of ``layer_norm(x, gamma, beta, eps=eps, axes=axes)`` in this arithmetic."""
    layout = Layout(x.shape, None, x.shape[x.ndim - len(axes) :])
    return _envelope(Rows(layout.rows(_float64(x)), eps, arithmetic), layout, gamma, beta)


def batch_norm_envelope(
    x: NDArray[Any],
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    *,
    eps: float,
    training: bool,
    channel_axis: int,
    arithmetic: Arithmetic,
) -> OperatorEnvelope:
    """Return the envelope of ``batch_norm(...)`` in this arithmetic, in training or inference."""
    channel = channel_axis % x.ndim
    layout = Layout(x.shape, channel, (x.shape[channel],))
    rows = Rows(
        layout.rows(_float64(x)),
        eps,
        arithmetic,
        given_mean=None if training else _float64(running_mean)[:, None],
        given_variance=None if training else _float64(running_var)[:, None],
    )
    return _envelope(rows, layout, gamma, beta)
