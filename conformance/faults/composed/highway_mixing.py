"""Faults of highway's value: which gate stands at which path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....adapters.numpy.operators.highway import Highway, Paths
from ..registry import fault, issue
from .highway_gates import OneMinusT

Array = np.ndarray


@fault(
    "gates-exchanged", hw="HW-F1", sources=issue("allenai/allennlp#195", "chainer/chainer#1317", "tflearn/tflearn#134")
)
class GatesExchanged(Highway):
    """Weighs x by the transform gate and the transform by the carry gate."""

    def mix(self, p: Paths) -> Array:
        return p.transformed * p.c + p.x * p.t


@fault("transform-ungated", hw="HW-F1")
class TransformUngated(Highway):
    """Adds the transform without its gate."""

    def mix(self, p: Paths) -> Array:
        return p.transformed + p.x * p.c


@fault("x-dropped", hw="HW-F1")
class XDropped(Highway):
    """Returns only the gated transform."""

    def mix(self, p: Paths) -> Array:
        return p.transformed * p.t


@fault("one-gate-a-row", hw="HW-F1")
class OneGateARow(OneMinusT):
    """Uses the first feature's gate for the whole row."""

    def transform_gate(self, z: Array) -> Array:
        t = super().transform_gate(z)
        return np.broadcast_to(t[..., :1], t.shape)


@fault("carry-ignored", hw="HW-F2")
class CarryIgnored(Highway):
    """Uses c = 1 - t though the carry has a gate of its own."""

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        p = super().paths(x, transform, gate, carry)
        return replace(p, c=self.coupled_carry(p.logits, p.t))


@fault("carry-complemented", hw="HW-F2")
class CarryComplemented(Highway):
    """Uses one minus the logistic function of the carry's logits."""

    def carry_gate(self, z: Array) -> Array:
        return self.sigmoid(-z)


@fault("gate-and-carry-exchanged", hw="HW-F2", sources=issue("lwtnn/lwtnn#19"))
class GateAndCarryExchanged(Highway):
    """Exchanges the gate and the carry where both are given."""

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        p = super().paths(x, transform, gate, carry)
        return p if p.carry_logits is None else replace(p, t=p.c, c=p.t)


@fault("carry-always-open", hw="HW-L3")
class CarryAlwaysOpen(Highway):
    """Adds x whole beside the gated transform, as in a residual connection."""

    def coupled_carry(self, z: Array, t: Array) -> Array:
        return np.ones_like(t)


@fault("carry-is-transform-gate", hw="HW-L5")
class CarryIsTransformGate(Highway):
    """Carries x by the transform gate as well: c = t."""

    def coupled_carry(self, z: Array, t: Array) -> Array:
        return t


@fault("shut-gates-pass-x", hw="HW-L6")
class ShutGatesPassX(Highway):
    """Passes x where neither gate is open, so that a layer never returns zeros."""

    def mix(self, p: Paths) -> Array:
        return np.where((p.t == 0) & (p.c == 0), p.x, super().mix(p))


@fault("gates-normalised", hw="HW-L7")
class GatesNormalised(Highway):
    """Divides the gate and the carry by their sum."""

    def mix(self, p: Paths) -> Array:
        return super().mix(replace(p, t=p.t / (p.t + p.c), c=p.c / (p.t + p.c)))


@fault("interpolated-from-transform", hw="HW-L1")
class InterpolatedFromTransform(Highway):
    """Computes H + (1 - t) (x - H), which for a closed gate gives x except its last bits."""

    def mix(self, p: Paths) -> Array:
        if p.carry_logits is not None:
            return super().mix(p)
        moved = (p.x - p.transformed).astype(self.data).astype(self.work)
        return p.transformed + p.c * moved
