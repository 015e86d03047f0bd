"""Sound variants of highway: ways to squash, ways to mix, ways to differentiate."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.highway import Highway, Paths
from ..registry import sound
from .working import NATIVE, Native, Wide

Array = np.ndarray


@sound("plain", operators=("highway",))
class Plain(Highway):
    """Both gates from exp(-|z|), the carry's from the negated logits, and the two products added."""


@sound("plain-logistic", operators=("highway",))
class PlainLogistic(Highway):
    """1 / (1 + exp(-z)) as it stands, where an overflow of exp gives the right limit."""

    def sigmoid(self, z: Array) -> Array:
        return 1 / (1 + np.exp(-z))


@sound("tanh-logistic", operators=("highway",))
class TanhLogistic(Highway):
    """(1 + tanh(z / 2)) / 2, and 1 - t as the same of -z."""

    def sigmoid(self, z: Array) -> Array:
        half = z.dtype.type(0.5)
        return half * np.tanh(half * z) + half


@sound("masked-logistic", operators=("highway",))
class MaskedLogistic(Highway):
    """The logistic function of positive and of negative logits apart, each by the form that cannot overflow."""

    def sigmoid(self, z: Array) -> Array:
        t = np.full_like(z, np.nan)
        above, below = z >= 0, z < 0
        t[above] = 1 / (1 + np.exp(-z[above]))
        grown = np.exp(z[below])
        t[below] = grown / (1 + grown)
        return t


@sound("one-minus-t", operators=("highway",))
class OneMinusT(Highway):
    """c = 1 - t by subtraction, in the derivative of the gate too."""

    def coupled_carry(self, z: Array, t: Array) -> Array:
        return 1 - t

    def slope(self, z: Array) -> Array:
        t = self.sigmoid(z)
        return t * (1 - t)


@sound("interpolated", operators=("highway",))
class Interpolated(Highway):
    """x + t (H - x) where the gates are coupled, so that a gate of +inf gives H except its last bits."""

    def mix(self, p: Paths) -> Array:
        if p.carry_logits is not None:
            return super().mix(p)
        return p.x + p.t * (p.transformed - p.x)


@sound("split-gate-gradient", operators=("highway",))
class SplitGateGradient(Highway):
    """The gate's cotangent as that by way of the transform less that by way of the carry."""

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        slope = self.slope(p.logits)
        by_transform = g * p.transformed * slope
        return by_transform if p.carry_logits is not None else by_transform - g * p.x * slope

    def input_gradient(self, contributions: list[Array]) -> Array:
        return sum(reversed(contributions[:-1]), contributions[-1])


sound("wide", operators=("highway",))(Wide)


@sound("native", operators=("highway",), conventions=NATIVE)
class NativeHighway(Native, Highway):
    """16-bit data computed on in its own dtype throughout."""
