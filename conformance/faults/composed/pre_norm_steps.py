"""Faults of pre_norm: where the norm stands, what passes by it, and what the gradients leave out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.blocks import Call, Gradients
from ....adapters.numpy.operators.pre_norm import PreNorm
from ..registry import fault, issue

Array = np.ndarray


class Recalled(PreNorm):
    """The base that remembers the call at hand."""

    given: Call

    def handed(self, call: Call) -> Array:
        self.given = call
        return super().handed(call)


@fault("post-norm-instead", pr="PR-F1")
class PostNormInstead(Recalled):
    """Normalises the sum, as post_norm does, and hands the sublayer x."""

    def handed(self, call: Call) -> Array:
        super().handed(call)
        return self.part_input(self.read(call.x, "x"), "sublayer")

    def add(self, skip: Array, through: Array) -> Array:
        return self.normed(skip + through, self.given)


@fault("norm-of-the-result", pr="PR-F1", sources=issue("google-research/tuning_playbook#4"))
class NormOfTheResult(Recalled):
    """Normalises what the sublayer returns, x + LN(F(x)), where it should normalise what the sublayer is handed."""

    def handed(self, call: Call) -> Array:
        super().handed(call)
        return self.part_input(self.read(call.x, "x"), "sublayer")

    def add(self, skip: Array, through: Array) -> Array:
        return skip + self.normed(through, self.given)


@fault("skip-within-sublayer", pr="PR-F1", sources=issue("probml/pml-book#709"))
class SkipWithinSublayer(PreNorm):
    """Adds x to what the sublayer is handed, F(LN(x) + x), and not to what it returns."""

    def handed(self, call: Call) -> Array:
        return self.part_input(self.normed(call.x, call) + self.read(call.x, "x"), "sublayer")

    def add(self, skip: Array, through: Array) -> Array:
        return through


@fault(
    "skip-normalised",
    pr="PR-F2",
    sources=issue("Howuhh/faster-trajectory-transformer#3", "tracel-ai/burn#1056", "pytorch/pytorch#61165"),
)
class SkipNormalised(PreNorm):
    """Overwrites x with LN(x), so that the skip path is normalised too."""

    def skip(self, x: Array, normed: Array) -> Array:
        return self.read(normed, "sublayer")


@fault("skip-recovered", pr="PR-L1")
class SkipRecovered(Recalled):
    """Recovers x for the skip path from xhat and the saved statistics, which gives it except its last bits."""

    def skip(self, x: Array, normed: Array) -> Array:
        rows = self.rows(x, "x")
        s = self.statistics(rows, self.number(self.given.eps))
        # Stored as the output is, in the dtype of x.
        xhat = self.normalise(rows, s).astype(self.data).astype(self.work)
        return (xhat / s.rstd + s.mean).reshape(self.shape)


@fault("dgamma-of-upstream", pr="PR-G2", kind="gradient")
class DgammaOfUpstream(PreNorm):
    """Sums the block's cotangent times xhat for dgamma, not the sublayer's."""

    upstream: Array

    def sublayer_gradient(self, sublayer: Any, normed: Array, g: Array) -> Array:
        self.upstream = g
        return super().sublayer_gradient(sublayer, normed, g)

    def gamma_gradient(self, p: Any) -> Array:
        return self.parameter_sum(self.upstream.reshape(p.xhat.shape) * p.xhat)


@fault("dbeta-of-upstream", pr="PR-G3", kind="gradient")
class DbetaOfUpstream(PreNorm):
    """Sums the block's cotangent for dbeta, not the sublayer's."""

    upstream: Array

    def sublayer_gradient(self, sublayer: Any, normed: Array, g: Array) -> Array:
        self.upstream = g
        return super().sublayer_gradient(sublayer, normed, g)

    def beta_gradient(self, p: Any) -> Array:
        return self.parameter_sum(self.upstream.reshape(p.xhat.shape))


@fault("sublayer-cotangent-centred", pr="PR-G4", kind="gradient")
class SublayerCotangentCentred(PreNorm):
    """Hands the sublayer a cotangent whose mean is taken off, as if it passed the norm first."""

    def sublayer_gradient(self, sublayer: Any, normed: Array, g: Array) -> Array:
        centred = g - np.mean(g, axis=-1, keepdims=True)
        return super().sublayer_gradient(sublayer, normed, centred)


@fault("sublayer-at-x", pr="PR-G4", kind="gradient")
class SublayerAtX(PreNorm):
    """Takes the sublayer's gradients at x where it should take them at LN(x)."""

    def handed(self, call: Call) -> Array:
        if self.stage == "vjp":
            return self.part_input(self.read(call.x, "x"), "sublayer")
        return super().handed(call)


@fault("skip-gradient-through-norm", pr="PR-G5", kind="gradient", sources=issue("Dao-AILab/quack#53"))
class SkipGradientThroughNorm(PreNorm):
    """Sends the skip path's cotangent through the norm along with the sublayer's."""

    def sublayer_gradient(self, sublayer: Any, normed: Array, g: Array) -> Array:
        return super().sublayer_gradient(sublayer, normed, g) + g

    def add_gradient(self, g: Array, through: Array) -> Array:
        return through


@fault("double-backward-without-sublayer", pr="PR-G6", kind="second-order")
class DoubleBackwardWithoutSublayer(PreNorm):
    """Leaves out how the sublayer bends."""

    def add_second_order(self, inner: Gradients, outer: Gradients) -> Gradients:
        return Gradients(inner.x, inner.gamma, outer.beta)
