"""Faults of one derivative over another, over right gradients, tangents and second order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway, Paths
from ....adapters.numpy.operators.mhc import Mhc
from ..registry import fault

Array = np.ndarray

#: Where it shows at every seed that a part bends which a gate or a fusion weight weighs, or a norm follows: in bfloat16
#: the roundings of the terms next to it may be several times as large.
_FINE = ("float16", "float32", "float64")


@fault("forward-over-reverse-parts-detached", po="PO-G8", hw="HW-G9", mh="MH-G11", kind="second-order", dtypes=_FINE)
@fault("forward-over-reverse-parts-detached", rs="RS-G7", pr="PR-G8", kind="second-order")
class ForwardOverReversePartsDetached(Composed):
    """Takes the Jacobians of the parts for constants when the gradient moves."""

    def pulled_twice(self, part: Any, x: Array, g: Array, a: Array, role: str) -> tuple[Array, Array]:
        x_bar, g_bar = super().pulled_twice(part, x, g, a, role)
        return (np.zeros_like(x_bar) if self.stage == "jvp_vjp" else x_bar), g_bar


@fault("reverse-over-forward-parts-detached", po="PO-G9", hw="HW-G10", mh="MH-G12", kind="second-order", dtypes=_FINE)
@fault("reverse-over-forward-parts-detached", rs="RS-G8", pr="PR-G9", kind="second-order")
class ReverseOverForwardPartsDetached(Composed):
    """Takes the Jacobians of the parts for constants when the tangent of y is differentiated."""

    def pulled_twice(self, part: Any, x: Array, g: Array, a: Array, role: str) -> tuple[Array, Array]:
        x_bar, g_bar = super().pulled_twice(part, x, g, a, role)
        return (np.zeros_like(x_bar) if self.stage == "vjp_jvp" else x_bar), g_bar


@fault("forward-over-forward-parts-detached", po="PO-G10", hw="HW-G11", mh="MH-G13", kind="tangent", dtypes=_FINE)
@fault("forward-over-forward-parts-detached", rs="RS-G9", pr="PR-G10", kind="tangent")
class ForwardOverForwardPartsDetached(Composed):
    """Takes the Jacobians of the parts for constants when the tangent of y moves."""

    def pushed_twice(self, part: Any, x: Array, tx: Array, sx: Array, role: str) -> Array:
        return np.zeros_like(super().pushed_twice(part, x, tx, sx, role))


@fault("forward-over-forward-no-cross-terms", hw="HW-G11", kind="tangent")
class ForwardOverForwardNoCrossTerms(Highway):
    """Leaves out the terms in which a gate moves in one direction, and what it multiplies in the other."""

    def second_tangent(self, p: Paths, directions: list[Array], along: list[list[Array]], bent: list[Array]) -> Array:
        resting = [np.zeros_like(one) for one in directions]
        return super().second_tangent(p, resting, [[np.zeros_like(one[0]), *one[1:]] for one in along], bent)


@fault("forward-over-forward-weights-detached", mh="MH-G13", kind="tangent")
class ForwardOverForwardWeightsDetached(Mhc):
    """Takes the Jacobian of the softmax for a constant when the tangent of y moves."""

    def softmax_second_derivative(self, w: Array, t: Array, s: Array) -> Array:
        return np.zeros_like(w)
