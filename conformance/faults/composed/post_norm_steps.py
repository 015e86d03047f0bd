"""Faults of post_norm: what is normalised, and what the gradients leave out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.blocks import Call, Gradients
from ....adapters.numpy.operators.post_norm import PostNorm
from ....adapters.numpy.operators.rows import Statistics
from ..registry import WIDE, fault, issue

Array = np.ndarray


@fault("norm-of-sublayer", po="PO-F2", sources=issue("harvardnlp/annotated-transformer#110"))
class NormOfSublayer(PostNorm):
    """Normalises the sublayer's result and adds x afterwards: x + LN(F(x))."""

    def value_of(self, call: Call) -> Array:
        through = self.value(call.sublayer, call.x, "sublayer")
        return self.read(call.x, "x") + self.normed(through, call, "sum")


@fault("norm-of-x", po="PO-F2")
class NormOfX(PostNorm):
    """Normalises x and adds the sublayer's result afterwards: LN(x) + F(x)."""

    def value_of(self, call: Call) -> Array:
        return self.normed(call.x, call) + self.value(call.sublayer, call.x, "sublayer")


@fault("pre-norm-instead", po="PO-F2", sources=issue("harvardnlp/annotated-transformer#1"))
class PreNormInstead(PostNorm):
    """Normalises what the sublayer is handed, as pre_norm does."""

    def value_of(self, call: Call) -> Array:
        normed = self.part_input(self.normed(call.x, call), "sublayer")
        return self.read(call.x, "x") + self.value(call.sublayer, normed, "sublayer")


# In 16 bits, computed on in float32, what is lost is below the rounding of what the sublayer returns.
@fault("variance-from-terms", po="PO-F1", dtypes=WIDE)
class VarianceFromTerms(PostNorm):
    """Takes the variance of the sum as that of x, that of the sublayer's result and twice their covariance."""

    terms: tuple[Array, Array]

    def add(self, skip: Array, through: Array) -> Array:
        self.terms = skip, through
        return super().add(skip, through)

    def variance(self, x: Array, mean: Array) -> Array:
        a, b = (self.centre(term.reshape(x.shape)) for term in self.terms)
        return np.maximum(self.row_mean(a * a) + self.row_mean(b * b) + 2 * self.row_mean(a * b), 0)


@fault("idle-sublayer-unnormalised", po="PO-L3")
class IdleSublayerUnnormalised(PostNorm):
    """Returns x as it is where the sublayer's result is zero throughout, as when a layer is dropped."""

    def value_of(self, call: Call) -> Array:
        through = self.value(call.sublayer, call.x, "sublayer")
        skip = self.read(call.x, "x")
        return self.normed(skip + through, call, "sum") if through.any() else skip


@fault("cancelled-sum-replaced", po="PO-L4")
class CancelledSumReplaced(PostNorm):
    """Normalises only x where the sublayer's result cancels it."""

    def add(self, skip: Array, through: Array) -> Array:
        total = skip + through
        return total if total.any() else skip


@fault("constant-sum-nan", po="PO-L4", kind="non-finite")
class ConstantSumNan(PostNorm):
    """Returns NaN where all values of the sum are equal, for it divides by their deviation first."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        xhat = super().normalise(x, s)
        return np.where(np.ptp(x, axis=1, keepdims=True) == 0, xhat.dtype.type(np.nan), xhat) if x.size else xhat


@fault("skip-gradient-past-norm", po="PO-G1", kind="gradient")
class SkipGradientPastNorm(PostNorm):
    """Adds the cotangent of y to dx where it should add that of the sum."""

    def add_gradient(self, ds: Array, through: Array, g: Array) -> Array:
        return g + through


@fault("sublayer-cotangent-past-norm", po="PO-G4", kind="gradient")
class SublayerCotangentPastNorm(PostNorm):
    """Hands the sublayer the cotangent of y where it should hand it that of the sum."""

    g: Array

    def gradients_of(self, call: Call, g: Array) -> Gradients:
        self.g = self.read(g, "g")
        return super().gradients_of(call, g)

    def sublayer_gradient(self, sublayer: Any, x: Array, ds: Array) -> Array:
        return super().sublayer_gradient(sublayer, x, self.g)


@fault("norm-gradient-at-x", po="PO-G2", kind="gradient")
class NormGradientAtX(PostNorm):
    """Takes the norm's gradients at x where it should take them at the sum."""

    def add(self, skip: Array, through: Array) -> Array:
        return skip if self.stage == "vjp" else super().add(skip, through)


@fault("double-backward-without-sublayer", po="PO-G6", kind="second-order")
class DoubleBackwardWithoutSublayer(PostNorm):
    """Leaves out how the sublayer bends."""

    def add_second_order(self, within: Array, by_sum: Array, by_sublayer: Array) -> Array:
        return by_sum + by_sublayer


@fault("tangent-without-sublayer", po="PO-G7", kind="tangent")
class TangentWithoutSublayer(PostNorm):
    """Leaves the sublayer out of the tangent."""

    def add_tangent(self, tx: Array, through: Array) -> Array:
        return tx
