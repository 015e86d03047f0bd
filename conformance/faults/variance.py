"""Faults of the moments and of the reciprocal root."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, RowSteps, Statistics
from .registry import WIDE, fault, issue


@fault(
    "unbiased-variance",
    ln="LN-F2",
    bn="BN-F2",
    sources=(
        *issue("karpathy/nn-zero-to-hero#44"),
        "https://discuss.pytorch.org/t/what-is-the-prefactor-of-nn-layernorm/34769",
    ),
)
class UnbiasedVariance(RowSteps):
    """Divides the squared deviations by n - 1, which is 0/0 for n = 1."""

    def variance(self, x: Array, mean: Array) -> Array:
        deviation = x - mean
        return self.row_sum(deviation * deviation) / x.dtype.type(x.shape[1] - 1)


@fault("unbiased-variance-guarded", ln="LN-F2", bn="BN-F2")
class UnbiasedVarianceGuarded(RowSteps):
    """Divides the squared deviations by max(n - 1, 1)."""

    def variance(self, x: Array, mean: Array) -> Array:
        deviation = x - mean
        return self.row_sum(deviation * deviation) / x.dtype.type(max(x.shape[1] - 1, 1))


@fault(
    "one-pass-variance",
    ln="LN-F8",
    bn="BN-F8",
    sources=issue("pytorch/pytorch#51102", "microsoft/onnxruntime#28463", "tensorflow/tensorflow#3290"),
)
class OnePassVariance(RowSteps):
    """Takes the variance as mean(x^2) - mean(x)^2, which cancels and can be negative."""

    def variance(self, x: Array, mean: Array) -> Array:
        return self.row_mean(x * x) - mean * mean


@fault(
    "one-pass-variance-clamped",
    ln="LN-F8",
    bn="BN-F8",
    sources=issue("google/flax#1491", "patrick-kidger/equinox#314", "keras-team/keras-core#866"),
)
class OnePassVarianceClamped(RowSteps):
    """Takes the variance as max(mean(x^2) - mean(x)^2, 0), which is still wrong by all digits."""

    def variance(self, x: Array, mean: Array) -> Array:
        return np.maximum(self.row_mean(x * x) - mean * mean, 0)


# In 16 bits, computed on in float32, what is lost there is below the rounding of the result.
@fault("one-pass-up-to-a-hundred", ln="LN-F1", bn="BN-F1", apart=("rm",), dtypes=WIDE)
class OnePassUpToAHundred(RowSteps):
    """Takes the variance as mean(x^2) - mean(x)^2 unless the mean is more than a hundred deviations."""

    def variance(self, x: Array, mean: Array) -> Array:
        exact = super().variance(x, mean)
        quick = np.maximum(self.row_mean(x * x) - mean * mean, 0)
        return np.where(mean * mean < 1e4 * exact, quick, exact)


@fault(
    "squares-overflow",
    ln="LN-R1",
    bn="BN-R1",
    kind="dtype",
    dtypes=("bfloat16", "float32"),
    sources=issue("pytorch/pytorch#178123"),
)
class SquaresOverflow(RowSteps):
    """Squares deviations as they are, which overflows float32 where they pass 2^64."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        mean, variance = self.moments(x)
        return Statistics(mean, variance, self.rstd(variance, eps))


@fault("rms-norm", ln="LN-F1", bn="BN-F1", apart=("rm",))
class RmsNorm(RowSteps):
    """Divides by the root mean square and subtracts no mean."""

    def mean(self, x: Array) -> Array:
        return np.zeros((x.shape[0], 1), x.dtype)


@fault("second-moment-for-variance", ln="LN-L10", bn="BN-L7")
class SecondMomentForVariance(RowSteps):
    """Subtracts the mean but divides by the root of mean(x^2), so that a shift of x changes the scale."""

    def variance(self, x: Array, mean: Array) -> Array:
        return self.row_mean(x * x)


@fault("variance-over-padded-count", ln="LN-L11", bn="BN-L8")
class VarianceOverPaddedCount(RowSteps):
    """Divides the squared deviations by n rounded up to a multiple of 4."""

    def variance(self, x: Array, mean: Array) -> Array:
        deviation = x - mean
        return self.row_sum(deviation * deviation) / x.dtype.type(-(-x.shape[1] // 4) * 4)


@fault("variance-over-count-twice", ln="LN-L12", bn="BN-L9")
class VarianceOverCountTwice(RowSteps):
    """Divides the squared deviations by n twice, so that values pass the bound sqrt(n - 1)."""

    def variance(self, x: Array, mean: Array) -> Array:
        return super().variance(x, mean) / x.dtype.type(x.shape[1])


@fault("variance-over-n-plus-one", ln="LN-F2", bn="BN-F2")
class VarianceOverNPlusOne(RowSteps):
    """Divides the squared deviations by n + 1."""

    def variance(self, x: Array, mean: Array) -> Array:
        deviation = x - mean
        return self.row_sum(deviation * deviation) / x.dtype.type(x.shape[1] + 1)


@fault("mean-absolute-deviation", ln="LN-F1", bn="BN-F1")
class MeanAbsoluteDeviation(RowSteps):
    """Takes the square of the mean absolute deviation for the variance."""

    def variance(self, x: Array, mean: Array) -> Array:
        return np.square(self.row_mean(np.abs(x - mean)))


@fault("divides-by-reciprocal-root", ln="LN-F1", bn="BN-F1", sources=issue("mosaicml/llm-foundry#371"))
class DividesByReciprocalRoot(RowSteps):
    """Divides by 1/sqrt(var + eps) where it should multiply."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        return (x - s.mean) / s.rstd


@fault("constant-group-unnormalised", ln="LN-L13", bn="BN-L10")
class ConstantGroupUnnormalised(RowSteps):
    """Leaves a group as it is where all its values are equal."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        xhat = super().normalise(x, s)
        return xhat if s.fixed or not x.size else np.where(np.ptp(x, axis=1, keepdims=True) == 0, x, xhat)


@fault("normalised-left", ln="LN-F1", bn="BN-F1")
class NormalisedLeft(RowSteps):
    """Leaves x as it is where each group is normalised already, to a thousandth, so that eps is left out there."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        near = np.abs(self.row_mean(x)) < 1e-3, np.abs(self.row_mean(x * x) - 1) < 1e-3
        return x - 0 if x.size and not s.fixed and np.logical_and(*near).all() else super().normalise(x, s)


@fault("one-value-left", ln="LN-F1", apart=("gn", "in"))
class OneValueLeft(Groups):
    """Leaves x as it is where it is one value."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        return x - 0 if x.size == 1 else super().normalise(x, s)


@fault("median-for-mean", ln="LN-F1", bn="BN-F1", apart=("rm",))
class MedianForMean(RowSteps):
    """Centres on the middle value of the sorted group."""

    def mean(self, x: Array) -> Array:
        return np.sort(x, axis=1)[:, x.shape[1] // 2][:, None] if x.shape[1] else super().mean(x)


@fault("reciprocal-root-twelve-bits", ln="LN-F1", bn="BN-F1", dtypes=("float16", *WIDE))
class ReciprocalRootTwelveBits(RowSteps):
    """Uses a table's reciprocal root, good to twelve bits, without a Newton step."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        exact = super().rstd(variance, eps)
        return exact * exact.dtype.type(1 + 2**-12)


@fault("reciprocal-root-single-precision", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=("float64",))
class ReciprocalRootSinglePrecision(RowSteps):
    """Takes the reciprocal root in float32, which shows in float64."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps).astype(np.float32).astype(variance.dtype)


def last_bit_by_exponent(values: Array) -> Array:
    """The values, one unit in the last place up for two exponents in every five.

    So scaling by a power of two changes bits, as it does where a root goes through exp2 and log2: shifted by any
    number of places that is not a multiple of five, some exponents move in or out of the two.
    """
    _, exponent = np.frexp(values)
    raised = np.nextafter(values, np.inf, dtype=values.dtype)
    return np.where((exponent % 5 < 2) & (values != 0), raised, values)


@fault("reciprocal-root-by-power", ln="LN-L2", bn="BN-L2", dtypes=WIDE)
class ReciprocalRootByPower(RowSteps):
    """Takes the reciprocal root through a power function, whose last bit depends on the exponent."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return last_bit_by_exponent(super().rstd(variance, eps))


@fault("backward-root-by-power", ln="LN-G7", bn="BN-G8", kind="gradient", dtypes=WIDE)
class BackwardRootByPower(RowSteps):
    """Takes the reciprocal root through a power function only in the backward pass."""

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        return Statistics(s.mean, s.variance, last_bit_by_exponent(s.rstd), s.fixed)
