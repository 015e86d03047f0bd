"""The error envelope of the operators: the largest error a sound algorithm can make, per element.

``envelope_of`` arranges the data of a call in rows and returns every envelope in the shape of the output it belongs
to. spec/accuracy.md says what is promised and why.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from ..spec.layout import Layout
from ..spec.operators import OPERATORS
from .accuracy import Arithmetic
from .envelope_derivatives import DerivativeEnvelope
from .envelope_results import RowEnvelope
from .envelope_rows import Array, RowBounds

T = TypeVar("T", bound=np.generic)


def _float64(z: Any) -> Array:
    return np.asarray(z).astype(np.float64)


def as_rows(layout: Layout, values: Any) -> Array:
    """Values that broadcast to x's shape, as a float64 matrix with one group per row."""
    values = _float64(values)
    return layout.rows(values if values.shape == layout.shape else np.broadcast_to(values, layout.shape))


def in_shape(layout: Layout, rows: NDArray[T]) -> NDArray[T]:
    """Values that broadcast to the matrix of `as_rows`, in x's shape."""
    matrix = (layout.count, layout.size)
    return layout.back(rows if rows.shape == matrix else np.broadcast_to(rows, matrix))


def affine_rows(layout: Layout, values: Any, default: float) -> Array:
    """gamma or beta as float64, to go beside the matrix of `as_rows`; `default` everywhere if None."""
    return np.full((1, 1), default) if values is None else layout.parameter_rows(_float64(values))


@attrs.frozen(slots=False, eq=False)
class OperatorEnvelope:
    """The envelope of one call; arrays have the operator's own shapes."""

    forward: RowEnvelope
    derivatives: DerivativeEnvelope
    layout: Layout

    def y(self) -> Array:
        """Envelope of y, shape of x."""
        with np.errstate(all="ignore"):
            return in_shape(self.layout, self.forward.y())

    def gradients(self, g: NDArray[Any]) -> dict[str, Array]:
        """Envelopes of "dx", "dgamma" and "dbeta" for the cotangent g of y, shape of x."""
        rows = as_rows(self.layout, g)
        with np.errstate(all="ignore"):
            sums = self.forward.parameter_sums(rows, self.layout.sharing)
            return {
                "dx": in_shape(self.layout, self.forward.dx(rows)),
                "dgamma": self.layout.to_parameter_shape(sums.dgamma_bound()),
                "dbeta": self.layout.to_parameter_shape(sums.dbeta_bound()),
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
            return in_shape(
                self.layout,
                self.derivatives.jvp(
                    as_rows(self.layout, tx),
                    affine_rows(self.layout, tgamma, 0.0),
                    affine_rows(self.layout, tbeta, 0.0),
                ),
            )

    def jvp_jvp(self, tx: Any, tgamma: Any, sx: Any, sgamma: Any) -> Array:
        """Envelope of the forward-mode derivative of the forward-mode derivative of y, shape of x."""
        with np.errstate(all="ignore"):
            found = self.derivatives.jvp_jvp(
                as_rows(self.layout, tx),
                affine_rows(self.layout, tgamma, 0.0),
                as_rows(self.layout, sx),
                affine_rows(self.layout, sgamma, 0.0),
            )
            return in_shape(self.layout, found)

    def vjp_vjp(self, g: Any, a: Any, b: Any, c: Any) -> dict[str, Array]:
        """Envelopes of the second-order "x", "gamma" and "g" at cotangents (a, b, c)."""
        with np.errstate(all="ignore"):
            x_bar, gamma_bar, g_bar = self.derivatives.vjp_vjp(
                as_rows(self.layout, g),
                as_rows(self.layout, a),
                affine_rows(self.layout, b, 0.0),
                affine_rows(self.layout, c, 0.0),
            )
        return {
            "x": in_shape(self.layout, x_bar),
            "gamma": self.layout.to_parameter_shape(gamma_bar),
            "g": in_shape(self.layout, g_bar),
        }

    def in_range(self, *, y: bool = False, gradient: bool = False, g: NDArray[Any] | None = None) -> NDArray[np.bool_]:
        """
        Where the plain formulas of the class neither overflow nor underflow, shape of x (R1, R2, R3, R6).

        ``y``: the formula of y too. ``gradient``: the formulas of dx, for the cotangent ``g`` if it is given.
        """
        gamma = self.forward.gamma
        within = self.forward.range
        inside = within.squares & within.stored
        if y:
            inside = inside & within.y_terms(gamma)
        if gradient:
            inside = inside & within.r_cubed & within.gain(gamma)
        if gradient and g is not None:
            rows = as_rows(self.layout, g)
            inside = inside & within.dx_terms(np.abs(rows) * np.maximum(1.0, np.abs(gamma)))
            inside = inside & within.dx_stored(gamma * rows)
        return in_shape(self.layout, inside)

    @property
    def statistics(self) -> RowBounds:
        """The rows underneath, for laws about the statistics themselves."""
        return self.forward.rows


def envelope_of(
    operator: str,
    x: NDArray[Any],
    gamma: Any,
    beta: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    *,
    arithmetic: Arithmetic,
    **settings: Any,
) -> OperatorEnvelope:
    """
    Return the envelope of one call of a normalising operator; it takes the operator's arguments.

    momentum may be missing from batch_norm's settings, because only the running statistics use it.
    """
    layout, record = Layout.of(operator, x.shape, settings), OPERATORS[operator]
    constant = record.has_modes and not settings["training"]
    rows = RowBounds(
        as_rows(layout, x),
        settings["eps"],
        arithmetic,
        given_mean=_float64(running_mean)[:, None] if constant else None,
        given_variance=_float64(running_var)[:, None] if constant else None,
        centred=record.centred,
    )
    forward = RowEnvelope(rows, affine_rows(layout, gamma, 1.0), affine_rows(layout, beta, 0.0), layout)
    return OperatorEnvelope(forward, DerivativeEnvelope(forward), layout)
