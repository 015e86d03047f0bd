"""Faults of highway's derivatives over correct values."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.highway import Highway, Paths
from ..registry import fault

Array = np.ndarray

#: Where the contributions to dx stand.
SKIP, TRANSFORM, GATE, CARRY = range(4)


class Without(Highway):
    """The base that leaves one contribution out of dx."""

    left_out: int

    def input_gradient(self, contributions: list[Array]) -> Array:
        kept = [c for place, c in enumerate(contributions) if place != self.left_out]
        return super().input_gradient(kept)


@fault("dx-without-carried", hw="HW-G1", kind="gradient")
class DxWithoutCarried(Without):
    """Leaves g (1 - t) out of dx."""

    left_out = SKIP


@fault("skip-gradient-ungated", hw="HW-G1", kind="gradient")
class SkipGradientUngated(Highway):
    """Adds the whole cotangent to dx where it should add g (1 - t)."""

    def skip_gradient(self, p: Paths, g: Array) -> Array:
        return g


@fault("transform-cotangent-ungated", hw="HW-G2", kind="gradient")
class TransformCotangentUngated(Highway):
    """Hands the transform the whole cotangent where it should hand it g t."""

    def transform_cotangent(self, p: Paths, g: Array) -> Array:
        return g


@fault("transform-cotangent-carried", hw="HW-G2", kind="gradient")
class TransformCotangentCarried(Highway):
    """Hands the transform g (1 - t)."""

    def transform_cotangent(self, p: Paths, g: Array) -> Array:
        return g * p.c


@fault("gate-detached", hw="HW-G3", kind="gradient")
class GateDetached(Highway):
    """Takes the gate for a constant, as printed derivations do that leave (H - x) dT/dx out."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        return np.zeros_like(g)


@fault("gate-gradient-of-transform-only", hw="HW-G3", kind="gradient")
class GateGradientOfTransformOnly(Highway):
    """Uses H where H - x belongs in the gate's gradient, forgetting that the carry closes as the gate opens."""

    def gated(self, p: Paths) -> Array:
        return p.transformed


@fault("gate-gradient-of-x", hw="HW-G3", kind="gradient")
class GateGradientOfX(Highway):
    """Uses x where H - x belongs in the gate's gradient."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        return g * p.x * self.slope(p.logits)


@fault("gate-gradient-negated", hw="HW-G3", kind="gradient")
class GateGradientNegated(Highway):
    """Uses x - H where H - x belongs in the gate's gradient."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        return -super().logits_cotangent(p, g)


@fault("gate-gradient-without-slope", hw="HW-G3", kind="gradient")
class GateGradientWithoutSlope(Highway):
    """Leaves t (1 - t) out of the gate's gradient."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        return g * self.gated(p)


@fault("gate-gradient-by-t-squared", hw="HW-G3", kind="gradient")
class GateGradientByTSquared(Highway):
    """Uses 1 - t^2, the slope of tanh, for that of the logistic function."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        return g * self.gated(p) * (1 - p.t * p.t)


@fault("dx-without-gate", hw="HW-G4", kind="gradient")
class DxWithoutGate(Without):
    """Leaves what passes through the gate out of dx."""

    left_out = GATE


@fault("dx-without-transform", hw="HW-G4", kind="gradient")
class DxWithoutTransform(Without):
    """Leaves what passes through the transform out of dx."""

    left_out = TRANSFORM


@fault("dx-without-carry", hw="HW-G5", kind="gradient")
class DxWithoutCarry(Without):
    """Leaves what passes through the carry's gate out of dx."""

    left_out = CARRY


@fault("carry-detached", hw="HW-G5", kind="gradient")
class CarryDetached(Highway):
    """Takes the carry for a constant."""

    def carry_cotangent(self, p: Paths, g: Array, carry_logits: Array) -> Array:
        return np.zeros_like(g)


@fault("carry-gradient-of-transform", hw="HW-G5", kind="gradient")
class CarryGradientOfTransform(Highway):
    """Uses H where x belongs in the carry's gradient."""

    def carry_cotangent(self, p: Paths, g: Array, carry_logits: Array) -> Array:
        return g * p.transformed * self.slope(carry_logits)


@fault("coupled-gradient-with-carry", hw="HW-G5", kind="gradient")
class CoupledGradientWithCarry(Highway):
    """Uses H - x in the gate's gradient where the carry has a gate of its own."""

    def gated(self, p: Paths) -> Array:
        return p.transformed - p.x


@fault("slope-overflows", hw="HW-G6", kind="non-finite")
class SlopeOverflows(Highway):
    """Computes the slope as exp(-z) / (1 + exp(-z))^2, which is NaN where exp overflows."""

    def slope(self, z: Array) -> Array:
        e = np.exp(-z)
        return e / ((1 + e) * (1 + e))


@fault("slope-kept-open", hw="HW-G6", kind="gradient")
class SlopeKeptOpen(Highway):
    """Keeps the slope from falling below 1/64, so that a saturated gate still learns."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        return g * self.gated(p) * np.maximum(self.slope(p.logits), g.dtype.type(2.0**-6))


@fault("double-backward-without-bend", hw="HW-G7", kind="second-order")
class DoubleBackwardWithoutBend(Highway):
    """Takes the gate's slope for a constant when the gradient is differentiated."""

    def gate_second_derivative(self, z: Array) -> Array:
        return np.zeros_like(z)


@fault("double-backward-bend-negated", hw="HW-G7", kind="second-order")
class DoubleBackwardBendNegated(Highway):
    """Uses 2 t - 1 for 1 - 2 t in the second derivative of the gate."""

    def gate_second_derivative(self, z: Array) -> Array:
        return -super().gate_second_derivative(z)


@fault("tangent-without-gate", hw="HW-G8", kind="tangent")
class TangentWithoutGate(Highway):
    """Takes the gates for constants in forward mode."""

    def tangent(self, p: Paths, tx: Array, transformed: Array, logits: Array, carry: Array | None = None) -> Array:
        return tx * p.c + transformed * p.t


@fault("tangent-without-carry", hw="HW-G8", kind="tangent")
class TangentWithoutCarry(Highway):
    """Takes the carry's gate for a constant in forward mode."""

    def tangent(self, p: Paths, tx: Array, transformed: Array, logits: Array, carry: Array | None = None) -> Array:
        return super().tangent(p, tx, transformed, logits)
