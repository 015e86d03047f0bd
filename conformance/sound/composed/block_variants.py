"""Sound variants of pre_norm and post_norm: most are those of the LayerNorm within."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from ..conventions import NativeNorm, OnePass
from ..registry import sound
from ..variants import CompensatedSums, FoldedAffine, FusedBackward, TreeSums, TwoPass, Welford, Wide
from .working import NATIVE

BLOCKS = ("pre_norm", "post_norm")

sound("two-pass", operators=BLOCKS)(TwoPass)
sound("welford", operators=BLOCKS)(Welford)
sound("tree-sums", operators=BLOCKS)(TreeSums)
sound("compensated-sums", operators=BLOCKS)(CompensatedSums)
sound("folded-affine", operators=BLOCKS)(FoldedAffine)
sound("fused-backward", operators=BLOCKS)(FusedBackward)
sound("wide", operators=BLOCKS)(Wide)
sound("native", operators=BLOCKS, conventions=NATIVE)(NativeNorm)
sound("one-pass", operators=BLOCKS, conventions={"variance_algorithm": "one-pass"})(OnePass)


@sound("step-by-step", operators=BLOCKS)
class StepByStep(RowSteps):
    """Differentiates x - mean, its square, the mean of that, the root and the quotient one after the other."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        return (x - s.mean) / (1 / s.rstd)

    def input_gradient(self, p: Pull) -> Array:
        s, count = p.statistics, p.x.dtype.type(p.x.shape[1])
        deviation, root = p.x - s.mean, 1 / s.rstd
        root_bar = -self.row_sum(p.h * p.xhat) / root
        # The variance's cotangent is root_bar / (2 root), and moves each deviation by 2 deviation / n times that.
        deviation_bar = p.h / root + deviation / root * root_bar / count
        return deviation_bar - self.row_sum(deviation_bar) / count


@sound("wide-statistics", operators=BLOCKS)
class WideStatistics(RowSteps):
    """Mean and variance in float64, everything else in the working dtype."""

    def moments(self, x: Array) -> tuple[Array, Array]:
        mean, variance = super().moments(x.astype(np.float64))
        return mean.astype(x.dtype), variance.astype(x.dtype)
