"""Faults of the mean square: what rms_norm divides by, and what it leaves in x."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.rms_norm import RmsNorm
from ...adapters.numpy.operators.rows import Array, Pull
from .dtypes import Narrow
from .registry import SIXTEEN_BIT, fault, issue


@fault("layer-norm-instead", rm="RM-F1")
class LayerNormInstead(RmsNorm):
    """Takes the mean out before the squares, as LayerNorm does."""

    def mean(self, x: Array) -> Array:
        return self.row_mean(x)

    def centre(self, z: Array) -> Array:
        return z - self.row_mean(z)


@fault("variance-for-mean-square", rm="RM-F1", sources=issue("keras-team/keras#21234", "keras-team/keras#21352"))
class VarianceForMeanSquare(RmsNorm):
    """Divides by the standard deviation and leaves the mean in."""

    def variance(self, x: Array, mean: Array) -> Array:
        return super().variance(x, self.row_mean(x))


@fault(
    "sum-for-mean",
    rm="RM-F2",
    sources=("https://github.com/tenstorrent/tt-mlir/pull/8798",),
)
class SumForMean(RmsNorm):
    """Divides by the root of the sum of squares, not of their mean."""

    def variance(self, x: Array, mean: Array) -> Array:
        return self.row_sum(x * x)


@fault(
    "scaled-by-root-of-n-inverted",
    rm="RM-F2",
    sources=issue("kyegomez/zeta#180"),
)
class ScaledByRootOfNInverted(RmsNorm):
    """Divides x / norm by sqrt(n) where it should multiply."""

    def normalise(self, x, s):  # type: ignore[no-untyped-def, override]
        return super().normalise(x, s) / x.dtype.type(max(x.shape[1], 1))


@fault("halves-merged-as-moments", rm="RM-F1", sources=("https://github.com/huggingface/candle/pull/3477",))
class HalvesMergedAsMoments(RmsNorm):
    """Merges the sums of squares of two halves with the term that merges sums of squared deviations."""

    def variance(self, x: Array, mean: Array) -> Array:
        half = x.shape[1] // 2
        first, second = self.row_sum(x[:, :half] * x[:, :half]), self.row_sum(x[:, half:] * x[:, half:])
        count = x.dtype.type(x.shape[1])
        between = (second - first) / count
        return (first + second + between * between * (x.dtype.type(half) * (count - half) / count)) / count


@fault("eps-of-dtype", rm="RM-F4", kind="dtype", sources=issue("pytorch/pytorch#189581"))
class EpsOfDtype(RmsNorm):
    """Uses the spacing of the dtype of x at 1, whatever eps is given."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        one, two = (np.full((), number, self.data) for number in (1, 2))
        return super().rstd(variance, self.number(float(np.nextafter(one, two)) - 1))


@fault("eps-bounds-root", rm="RM-F3", sources=("https://github.com/huggingface/diffusers/pull/13316",))
class EpsBoundsRoot(RmsNorm):
    """Divides by max(root mean square, eps), as a division by a norm that is kept from 0."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return 1 / np.maximum(np.sqrt(variance), eps)


@fault(
    "reciprocal-root-narrow",
    rm="RM-F1",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=("https://github.com/pytorch/helion/pull/2273",),
)
class ReciprocalRootNarrow(Narrow, RmsNorm):
    """Rounds 1/rms to the 16-bit dtype of x."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return self.narrow(super().rstd(variance, eps))


@fault("dx-of-layer-norm", rm="RM-G1", kind="gradient")
class DxOfLayerNorm(RmsNorm):
    """Subtracts mean(gamma g) in dx, as LayerNorm's gradient does."""

    def input_gradient(self, p: Pull) -> Array:
        return super().input_gradient(p) - p.statistics.rstd * self.row_mean(p.h)


@fault("dx-sum-for-mean", rm="RM-G1", kind="gradient")
class DxSumForMean(RmsNorm):
    """Takes the sum of gamma g xhat in dx where its mean belongs."""

    def input_gradient(self, p: Pull) -> Array:
        return p.statistics.rstd * (p.h - p.xhat * self.row_sum(p.h * p.xhat))
