"""Faults of the gradients over correct forward values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from .axes import mean_over
from .registry import WIDE, fault, issue


@fault("dx-no-mean", ln="LN-G4", bn="BN-G5", kind="gradient")
class DxNoMean(RowSteps):
    """Leaves mean(gamma g) out of dx."""

    def input_gradient(self, p: Pull) -> Array:
        if p.statistics.fixed:
            return super().input_gradient(p)
        return p.statistics.rstd * (p.h - p.xhat * self.row_mean(p.h * p.xhat))


@fault("dx-no-xhat", ln="LN-G1", bn="BN-G1", kind="gradient", apart=("rm",))
class DxNoXhat(RowSteps):
    """Leaves xhat mean(gamma g xhat) out of dx."""

    def input_gradient(self, p: Pull) -> Array:
        if p.statistics.fixed:
            return super().input_gradient(p)
        return p.statistics.rstd * self.centre(p.h)


@fault("dx-mean-twice", ln="LN-G4", bn="BN-G5", kind="gradient", sources=issue("tenstorrent/tt-metal#53215"))
class DxMeanTwice(RowSteps):
    """Subtracts mean(gamma g) from dx twice."""

    def input_gradient(self, p: Pull) -> Array:
        if p.statistics.fixed:
            return super().input_gradient(p)
        return super().input_gradient(p) - p.statistics.rstd * self.row_mean(p.h)


@fault("dx-mean-times-xhat", ln="LN-G1", bn="BN-G1", kind="gradient", apart=("rm",))
class DxMeanTimesXhat(RowSteps):
    """Multiplies the mean term of dx by xhat as well, as a printed derivation has it."""

    def input_gradient(self, p: Pull) -> Array:
        if p.statistics.fixed:
            return super().input_gradient(p)
        return p.statistics.rstd * (p.h - p.xhat * self.row_mean(p.h) - p.xhat * self.row_mean(p.h * p.xhat))


@fault("small-cotangents-skipped", ln="LN-G1", bn="BN-G1", kind="gradient", dtypes=("bfloat16", *WIDE))
class SmallCotangentsSkipped(RowSteps):
    """Leaves dx of a row 0 where all its cotangents are below 2^-20, as if they were padding."""

    def input_gradient(self, p: Pull) -> Array:
        near = np.max(np.abs(p.g), axis=1, keepdims=True, initial=0) < 2.0**-20
        return np.where(near, p.x.dtype.type(0), super().input_gradient(p))


@fault("dx-n-minus-one", ln="LN-G1", bn="BN-G1", kind="gradient")
class DxNMinusOne(RowSteps):
    """Divides the sums in dx by n - 1."""

    def input_gradient(self, p: Pull) -> Array:
        if p.statistics.fixed:
            return super().input_gradient(p)
        count = p.x.shape[1]
        means = p.h - self.project(p.h, p.xhat, p.statistics)
        return p.statistics.rstd * (p.h - means * p.x.dtype.type(count / max(count - 1, 1)))


@fault(
    "statistics-detached",
    ln="LN-G1",
    bn="BN-G1",
    kind="gradient",
    apart=("rm",),
    sources=issue("facebookresearch/CrypTen#143"),
)
class StatisticsDetached(RowSteps):
    """Takes mean and variance for constants in the backward pass."""

    def input_gradient(self, p: Pull) -> Array:
        return p.statistics.rstd * p.h


@fault("variance-detached", ln="LN-G5", bn="BN-G6", kind="gradient")
class VarianceDetached(RowSteps):
    """Takes the reciprocal root for a constant in the backward pass."""

    def project(self, z: Array, xhat: Array, s: Statistics) -> Array:
        return z if s.fixed else self.centre(z)


@fault("gamma-after-reduction", ln="LN-G1", kind="gradient", apart=("in",))
class GammaAfterReduction(RowSteps):
    """Multiplies by gamma after the two reductions of dx."""

    def input_gradient(self, p: Pull) -> Array:
        return p.gamma * p.statistics.rstd * self.project(p.g, p.xhat, p.statistics)


@fault("dx-no-gamma", ln="LN-G1", bn="BN-G1", kind="gradient")
class DxNoGamma(RowSteps):
    """Leaves gamma out of dx."""

    def backward_gamma(self, gamma: Array) -> Array:
        return np.ones_like(gamma)


@fault(
    "dx-one-plus-gamma",
    ln="LN-G1",
    bn="BN-G1",
    kind="gradient",
    sources=issue("NVIDIA/TransformerEngine#67", "pytorch/executorch#22444"),
)
class DxOnePlusGamma(RowSteps):
    """Uses 1 + gamma only in the backward pass."""

    def backward_gamma(self, gamma: Array) -> Array:
        return 1 + gamma


@fault("dx-gamma-reversed", ln="LN-G1", kind="gradient", sources=issue("deepspeedai/DeepSpeed#692"))
class DxGammaReversed(RowSteps):
    """Reads gamma by the wrong index, last to first, in the backward pass."""

    def backward_gamma(self, gamma: Array) -> Array:
        return gamma[::-1, ::-1]


@fault(
    "dx-gamma-clamped",
    ln="LN-G1",
    bn="BN-G1",
    kind="gradient",
    sources=issue("NVIDIA/apex#1715"),
)
class DxGammaClamped(RowSteps):
    """Keeps |gamma| from falling below 1e-3 in the backward pass."""

    def backward_gamma(self, gamma: Array) -> Array:
        return np.copysign(np.maximum(np.abs(gamma), gamma.dtype.type(1e-3)), gamma)


# y is kept in float32, so that in float16, whose beta is never far from gamma, nothing is lost that shows.
@fault("xhat-from-y", ln="LN-G1", bn="BN-G1", kind="gradient", apart=("rm",), dtypes=("bfloat16", *WIDE))
class XhatFromY(RowSteps):
    """Saves y in place of x: xhat in the gradients is (y - beta) / gamma, of which a large beta leaves little."""

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        p = super().pull(x, gamma, beta, g, s)
        kept = np.abs(p.gamma) > 2.0**-7
        y = p.gamma * p.xhat + p.beta
        return replace(p, xhat=np.where(kept, (y - p.beta) / np.where(kept, p.gamma, 1), p.xhat))


@fault("dx-uses-y", ln="LN-G1", bn="BN-G1", kind="gradient")
class DxUsesY(RowSteps):
    """Uses y for xhat in dx."""

    def input_gradient(self, p: Pull) -> Array:
        y = p.gamma * p.xhat + p.beta
        return p.statistics.rstd * self.project(p.h, y, p.statistics)


@fault("single-value-gradient", bn="BN-E1", in_="IN-E1", kind="gradient")
class SingleValueGradient(RowSteps):
    """Takes the statistics of a single value for constants in the backward pass: dx is gamma g / sqrt(var + eps)."""

    def input_gradient(self, p: Pull) -> Array:
        return p.statistics.rstd * p.h if p.xhat.shape[1] == 1 else super().input_gradient(p)


@fault("gradient-without-eps", ln="LN-G1", bn="BN-G1", kind="gradient")
class GradientWithoutEps(RowSteps):
    """Uses 1/sigma for 1/sqrt(var + eps) in the backward pass."""

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        return Statistics(s.mean, s.variance, 1 / np.sqrt(s.variance), s.fixed)


@fault(
    "constant-group-nan-gradient",
    ln="LN-G1",
    bn="BN-G1",
    kind="gradient",
    sources=issue("pyg-team/pytorch_geometric#2917", "tracel-ai/burn#1992"),
)
class ConstantGroupNanGradient(RowSteps):
    """Differentiates through sqrt(var) on its own, which is NaN where all values are equal."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        if p.statistics.fixed or not dx.size:
            return dx
        return np.where(np.ptp(p.x, axis=1, keepdims=True) == 0, dx.dtype.type(np.nan), dx)


@fault("dx-inverse-cube", ln="LN-R2", bn="BN-R2", kind="gradient", dtypes=("bfloat16", "float32"))
class DxInverseCube(RowSteps):
    """Takes dx through (var + eps)^(-3/2), which underflows float32 where the deviation passes 2^42."""

    def input_gradient(self, p: Pull) -> Array:
        s = p.statistics
        if s.fixed:
            return super().input_gradient(p)
        deviation = p.x - s.mean
        cube = s.rstd * s.rstd * s.rstd
        return s.rstd * self.centre(p.h) - cube * self.row_mean(p.h * deviation) * deviation


@fault("dx-no-rstd", ln="LN-G6", bn="BN-G7", kind="gradient")
class DxNoRstd(RowSteps):
    """Leaves the reciprocal root out of dx, so that it does not scale with x."""

    def input_gradient(self, p: Pull) -> Array:
        return self.project(p.h, p.xhat, p.statistics)


@fault("cotangent-clipped", ln="LN-G8", bn="BN-G9", kind="gradient")
class CotangentClipped(RowSteps):
    """Clips the cotangent to [-1, 1], so that the gradients are not linear in it."""

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        return super().pull(x, gamma, beta, np.clip(g, -1, 1), s)


@fault(
    "parameter-gradients-clipped", ln="LN-G8", bn="BN-G9", kind="gradient", dtypes=("bfloat16", "float32", "float64")
)
class ParameterGradientsClipped(RowSteps):
    """Clips the gradients of parameters to the largest number of float16, whatever their dtype."""

    def parameter_sum(self, terms: Array) -> Array:
        return np.clip(super().parameter_sum(terms), -65504, 65504)


@fault("zero-cotangent-nan", ln="LN-G8", bn="BN-G9", kind="gradient")
class ZeroCotangentNan(RowSteps):
    """Divides the cotangent by its largest magnitude and multiplies the gradients by it, which for zero is 0/0."""

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        size = np.exp2(np.ceil(np.log2(np.abs(g).max(initial=0))))  # a power of two rounds nothing
        return super().pull(x, gamma, beta, (g / size) * size, s)


@fault("dgamma-x", ln="LN-G2", bn="BN-G2", kind="gradient")
class DgammaX(RowSteps):
    """Sums g x for dgamma."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(p.g * p.x)


@fault("dgamma-deviation", ln="LN-G2", bn="BN-G2", kind="gradient", apart=("rm",))
class DgammaDeviation(RowSteps):
    """Sums g (x - mean) for dgamma, without the reciprocal root."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(p.g * (p.x - p.statistics.mean))


@fault("dgamma-y", ln="LN-G2", bn="BN-G2", kind="gradient")
class DgammaY(RowSteps):
    """Sums g y for dgamma."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(p.g * (p.gamma * p.xhat + p.beta))


@fault(
    "dgamma-of-overwritten-cotangent",
    ln="LN-G2",
    bn="BN-G2",
    kind="gradient",
    sources=("https://github.com/linkedin/Liger-Kernel/pull/376",),
)
class DgammaOfOverwrittenCotangent(RowSteps):
    """Sums dx xhat for dgamma: dx was written over the cotangent."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(self.input_gradient(p) * p.xhat)


@fault("dgamma-mean", ln="LN-G2", bn="BN-G2", kind="gradient")
class DgammaMean(RowSteps):
    """Averages g xhat for dgamma where it should sum."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(p.g * p.xhat) / p.x.dtype.type(max(self.layout.sharing, 1))


@fault("dgamma-zero", ln="LN-G2", bn="BN-G2", kind="gradient", sources=issue("apache/mxnet#12899"))
class DgammaZero(RowSteps):
    """Returns zero for dgamma."""

    def gamma_gradient(self, p: Pull) -> Array:
        return np.zeros_like(super().gamma_gradient(p))


@fault("dgamma-last-group-only", ln="LN-G2", kind="gradient", sources=issue("karpathy/llm.c#408"))
class DgammaLastGroupOnly(RowSteps):
    """Overwrites dgamma group by group, or sample by sample, where it should add."""

    def gamma_gradient(self, p: Pull) -> Array:
        if not len(p.x):
            return super().gamma_gradient(p)
        return self.shared_sum(self.by_parameter(p.g * p.xhat)[:, -self.layout.positions :])


@fault("dbeta-mean", ln="LN-G3", bn="BN-G3", kind="gradient")
class DbetaMean(RowSteps):
    """Averages g for dbeta where it should sum."""

    def beta_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(p.g) / p.x.dtype.type(max(self.layout.sharing, 1))


@fault("dbeta-times-gamma", ln="LN-G3", bn="BN-G3", kind="gradient")
class DbetaTimesGamma(RowSteps):
    """Sums gamma g for dbeta."""

    def beta_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(p.gamma * p.g)


@fault("parameter-gradients-exchanged", ln="LN-G3", bn="BN-G3", kind="gradient")
class ParameterGradientsExchanged(RowSteps):
    """Returns dbeta for dgamma and dgamma for dbeta."""

    def gamma_gradient(self, p: Pull) -> Array:
        return super().beta_gradient(p)

    def beta_gradient(self, p: Pull) -> Array:
        return super().gamma_gradient(p)


@fault(
    "backward-assumes-matrix",
    ln="LN-G1",
    kind="gradient",
    sources=issue("flagos-ai/FlagGems#5392", "linkedin/Liger-Kernel#1375"),
)
class BackwardAssumesMatrix(Groups):
    """Takes everything but the first axis for the group in the backward pass."""

    backward = False

    def project(self, z: Array, xhat: Array, s: Statistics) -> Array:
        self.backward = True
        projected = super().project(z, xhat, s)
        self.backward = False
        return projected

    def row_mean(self, terms: Array) -> Array:
        if not self.backward:
            return super().row_mean(terms)
        return mean_over(terms, self.layout, tuple(range(1, len(self.shape))) or (0,))


@fault("gradient-of-other-mode", bn="BN-G4", kind="gradient", sources=issue("facebookresearch/CrypTen#143"))
class GradientOfOtherMode(BatchNorm):
    """Sends gradients through mean and variance in inference as in training."""

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        return Statistics(s.mean, s.variance, s.rstd, fixed=False)


@fault("inference-dgamma-from-batch", bn="BN-G4", kind="gradient")
class InferenceDgammaFromBatch(BatchNorm):
    """Uses the batch's xhat for dgamma in inference."""

    def gamma_gradient(self, p: Pull) -> Array:
        if not p.statistics.fixed:
            return super().gamma_gradient(p)
        batch = self.statistics(p.x, self.eps)
        return self.parameter_sum(p.g * self.normalise(p.x, batch))

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        self.eps = eps
        return s
