"""Faults of batch normalisation in inference."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.rows import Array, Pull, Statistics
from .neighbours import next_up
from .registry import WIDE, fault, issue


class Inference(BatchNorm):
    """The base with the inference statistics in one place."""

    def batch(self, x: Array, eps: np.floating) -> Statistics:
        """The batch's own statistics, as training has them."""
        return super().statistics(x, eps)


@fault("inference-uses-batch-stats", bn="BN-I1", sources=issue("pytorch/pytorch#49229", "keras-team/keras#9965"))
class InferenceUsesBatchStats(Inference):
    """Normalises in inference with the batch's statistics."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return self.batch(x, eps)


@fault("inference-of-new-layer", bn="BN-I1")
class InferenceOfNewLayer(Inference):
    """Normalises in inference with the batch's statistics as long as every running mean is 0."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return super().fixed_statistics(x, mean, variance, eps) if mean.any() or not x.size else self.batch(x, eps)


@fault("inference-batch-mean", bn="BN-I3")
class InferenceBatchMean(Inference):
    """Subtracts the batch's mean in inference, so that a sample depends on those beside it."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        s = super().fixed_statistics(x, mean, variance, eps)
        return Statistics(self.batch(x, eps).mean if x.shape[1] else s.mean, s.variance, s.rstd, fixed=True)


@fault("inference-batch-size-last-bit", bn="BN-I6", dtypes=WIDE)
class InferenceBatchSizeLastBit(Inference):
    """Takes another path for several samples than for one, whose reciprocal root differs in the last bit."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        s = super().fixed_statistics(x, mean, variance, eps)
        return s if x.shape[1] < 2 else Statistics(s.mean, s.variance, next_up(s.rstd), fixed=True)


@fault("inference-adapts", bn="BN-I4")
class InferenceAdapts(Inference):
    """Blends a tenth of the batch's variance into the running one in inference, which is not affine in x."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        if x.shape[1]:
            variance = self.number(0.9) * variance + self.number(0.1) * self.batch(x, eps).variance
        return super().fixed_statistics(x, mean, variance, eps)


@fault("inference-saturates", bn="BN-I4")
class InferenceSaturates(BatchNorm):
    """Clips xhat to [-2, 2] in inference."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        xhat = super().normalise(x, s)
        return np.clip(xhat, -2, 2) if s.fixed else xhat


@fault(
    "inference-updates-stats",
    bn="BN-I2",
    kind="statistics",
    sources=issue("keras-team/keras#7085", "keras-team/keras#9965"),
)
class InferenceUpdatesStats(Inference):
    """Updates the running statistics in inference as well."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        if self.training or count == 0:
            return super().running(s, mean, variance, momentum, count, eps)
        batch = self.batch(self.values, eps)
        return self.updated(mean, batch.mean, momentum), self.updated(variance, batch.variance, momentum)

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        self.values = x
        return super().fixed_statistics(x, mean, variance, eps)


@fault("inference-rounds-stats", bn="BN-I2", kind="statistics", dtypes=("bfloat16", "float32", "float64"))
class InferenceRoundsStats(BatchNorm):
    """Returns the running statistics from inference rounded to float16."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        mean, variance = super().running(s, mean, variance, momentum, count, eps)
        if self.training:
            return mean, variance
        return mean.astype(np.float16).astype(mean.dtype), variance.astype(np.float16).astype(mean.dtype)


@fault("running-var-as-deviation", bn="BN-I1")
class RunningVarAsDeviation(BatchNorm):
    """Takes the running variance for a standard deviation in inference."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return Statistics(mean, variance, 1 / (variance + eps), fixed=True)


@fault("running-mean-ignored", bn="BN-I1")
class RunningMeanIgnored(BatchNorm):
    """Subtracts no mean in inference."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return super().fixed_statistics(x, np.zeros_like(mean), variance, eps)


@fault(
    "param-order-swapped",
    bn="BN-I1",
    sources=issue("keras-team/keras#3248", "Vladkryvoruchko/PSPNet-Keras-tensorflow#23"),
)
class ParamOrderSwapped(BatchNorm):
    """Takes the running mean for gamma and gamma for the running mean in inference, where both are given."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        if s.fixed and gamma is not None:
            s, gamma = Statistics(gamma, s.variance, s.rstd, fixed=True), s.mean
        return super().output(x, s, gamma, beta)


@fault("inference-beta-ignored", bn="BN-I1")
class InferenceBetaIgnored(BatchNorm):
    """Adds no beta in inference."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        return super().output(x, s, gamma, None if s.fixed else beta)


@fault("empty-inference-refused", bn="BN-E3", kind="argument", sources=issue("pytorch/pytorch#12013"))
class EmptyInferenceRefused(BatchNorm):
    """Raises in inference for a batch without samples, as training may."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        if not x.shape[1]:
            raise ValueError("expected at least one sample")
        return super().fixed_statistics(x, mean, variance, eps)


@fault("empty-inference-clears-stats", bn="BN-E3", kind="statistics")
class EmptyInferenceClearsStats(BatchNorm):
    """Returns zeros for the running statistics from inference for a batch without samples."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        mean, variance = super().running(s, mean, variance, momentum, count, eps)
        if self.training or count:
            return mean, variance
        return np.zeros_like(mean), np.zeros_like(variance)


@fault("empty-inference-nan-gradient", bn="BN-E4", kind="gradient")
class EmptyInferenceNanGradient(BatchNorm):
    """Returns NaN for the parameter gradients of a batch without samples, for it scales by the count and back."""

    def parameter_sum(self, terms: Array) -> Array:
        total = super().parameter_sum(terms)
        return total if terms.shape[1] else total / total.dtype.type(0)


@fault("empty-inference-unwritten-gradient", bn="BN-E4", kind="gradient")
class EmptyInferenceUnwrittenGradient(BatchNorm):
    """Leaves the parameter gradients of a batch without samples unwritten."""

    def parameter_sum(self, terms: Array) -> Array:
        # A fixed number stands for what the memory happened to hold.
        return super().parameter_sum(terms) if terms.shape[1] else np.full((len(terms), 1), 3.0, terms.dtype)


# Derivatives in inference, where the statistics are constants.


@fault("inference-second-order-without-gamma", bn="BN-G10", kind="second-order")
class InferenceSecondOrderWithoutGamma(BatchNorm):
    """Ignores the cotangent of dgamma where the gradient of an inference call is differentiated."""

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        x_bar, gamma_bar, g_bar = super().second_order(p, a, b, c)
        return x_bar, gamma_bar, g_bar - b * p.xhat if p.statistics.fixed else g_bar


@fault("inference-tangent-without-gamma", bn="BN-G11", kind="tangent")
class InferenceTangentWithoutGamma(BatchNorm):
    """Ignores the tangent of gamma in inference."""

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        return super().tangent(p, tx, np.zeros_like(tgamma) if p.statistics.fixed else tgamma, tbeta)


@fault("inference-gradient-stands-still", bn="BN-G13", kind="second-order")
class InferenceGradientStandsStill(BatchNorm):
    """Takes the gradient of an inference call for a constant in forward mode."""

    def forward_over_reverse(self, p: Pull, sx: Array, sgamma: Array, sbeta: Array) -> tuple[Array, Array]:
        x_bar, gamma_bar = super().forward_over_reverse(p, sx, sgamma, sbeta)
        return (np.zeros_like(x_bar), np.zeros_like(gamma_bar)) if p.statistics.fixed else (x_bar, gamma_bar)


@fault("inference-tangent-without-gradient", bn="BN-G14", kind="second-order")
class InferenceTangentWithoutGradient(BatchNorm):
    """Takes the tangent of an inference call for a constant in reverse mode."""

    def reverse_over_forward(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> tuple[Array, Array]:
        x_bar, gamma_bar = super().reverse_over_forward(p, tx, tgamma, tbeta)
        return (np.zeros_like(x_bar), np.zeros_like(gamma_bar)) if p.statistics.fixed else (x_bar, gamma_bar)


@fault("inference-tangent-stands-still", bn="BN-G15", kind="tangent")
class InferenceTangentStandsStill(BatchNorm):
    """Takes the tangent of an inference call for a constant in forward mode."""

    def second_tangent(self, p: Pull, tx: Array, tgamma: Array, sx: Array, sgamma: Array) -> Array:
        found = super().second_tangent(p, tx, tgamma, sx, sgamma)
        return np.zeros_like(found) if p.statistics.fixed else found


# Multiples of a cotangent that pass the limit are beyond float16.
@fault("inference-cotangent-clipped", bn="BN-G9", kind="gradient", dtypes=("bfloat16", *WIDE))
class InferenceCotangentClipped(BatchNorm):
    """Clips the cotangent to 2^16 in inference."""

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        return super().pull(x, gamma, beta, np.clip(g, -(2.0**16), 2.0**16) if s.fixed else g, s)


@fault("inference-gradient-of-all", bn="CM-N1", kind="non-finite")
class InferenceGradientOfAll(BatchNorm):
    """Adds zero times the sum of x to dx in inference, so that one NaN reaches every element."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        return dx + 0 * p.x.sum() if p.statistics.fixed else dx
