"""Faults of the running statistics."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.rows import Array, Statistics
from ...adapters.numpy.operators.staged import Arrays
from .registry import fault, issue


@fault(
    "momentum-convention",
    bn="BN-S1",
    kind="statistics",
    sources=issue("d2l-ai/d2l-en#2213", "Oneflow-Inc/oneflow#6055", "Jermmy/pytorch-quantization-demo#17"),
)
class MomentumConvention(BatchNorm):
    """Takes momentum for the weight of the old statistic."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, 1 - momentum)


@fault(
    "running-var-bessel",
    bn="BN-S2",
    kind="statistics",
    sources=issue("ml-explore/mlx#3817", "tensorflow/tensorflow#55545", "keras-team/keras#10443"),
)
class RunningVarBessel(BatchNorm):
    """Enters the unbiased variance into the running one."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        return variance * self.number(count / (count - 1)) if count > 1 else variance


@fault("running-var-bessel-nan", bn="BN-S2", kind="statistics", sources=issue("pytorch/pytorch#1381"))
class RunningVarBesselNan(BatchNorm):
    """Enters the unbiased variance into the running one, and so 0/0 where a channel holds one value."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        return variance * self.number(count / (count - 1) if count > 1 else np.nan)


@fault("running-var-bessel-of-samples", bn="BN-S2", kind="statistics")
class RunningVarBesselOfSamples(BatchNorm):
    """Enters N / (N - 1) of the variance into the running one, N being the number of samples, not of values."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        samples = self.shape[0]
        return variance * self.number(samples / (samples - 1)) if samples > 1 else variance


@fault(
    "bessel-n1-nan",
    bn="BN-E5",
    kind="statistics",
    sources=issue("pytorch/pytorch#1381", "FluxML/Flux.jl#1992", "PaddlePaddle/Paddle#11445"),
)
class BesselN1Nan(BatchNorm):
    """Poisons the running variance with 0/0 where a channel holds one value."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        return variance * self.number(np.nan) if count == 1 else variance


@fault("running-mean-clipped", bn="BN-L13", kind="statistics")
class RunningMeanClipped(BatchNorm):
    """Lets no batch mean beyond 8 into the running one, as a guard against outliers."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        within = Statistics(np.clip(s.mean, -8, 8), s.variance, s.rstd)
        return super().running(within, mean, variance, momentum, count, eps)


@fault("running-var-with-eps", bn="BN-S2", kind="statistics")
class RunningVarWithEps(BatchNorm):
    """Enters variance + eps into the running variance."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        return variance + eps


@fault("running-deviation", bn="BN-S2", kind="statistics")
class RunningDeviation(BatchNorm):
    """Enters the standard deviation into the running variance."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        return np.sqrt(variance)


@fault("small-momentum-ignored", bn="BN-S1", kind="statistics")
class SmallMomentumIgnored(BatchNorm):
    """Keeps the old statistics where momentum is 1/20 or less."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return old if momentum <= 0.05 else super().updated(old, new, momentum)


@fault(
    "momentum-ignored", bn="BN-S1", kind="statistics", sources=issue("pytorch/pytorch#18525", "pytorch/pytorch#40074")
)
class MomentumIgnored(BatchNorm):
    """Weighs the new statistic by 0.1 whatever momentum is given."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, 0.1)


@fault("momentum-zero-is-default", bn="BN-S4", kind="statistics")
class MomentumZeroIsDefault(BatchNorm):
    """Takes a momentum of 0 for one not given, and uses 0.1."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, momentum or 0.1)


@fault("momentum-one-is-average", bn="BN-S4", kind="statistics", sources=issue("pytorch/pytorch#110850"))
class MomentumOneIsAverage(BatchNorm):
    """Takes a momentum of 1 for the plain average of old and new."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, 0.5 if momentum == 1 else momentum)


@fault("stats-never-updated", bn="BN-S1", kind="statistics", sources=issue("paiml/aprender#2166"))
class StatsNeverUpdated(BatchNorm):
    """Returns the running statistics as they were."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return old


@fault("running-var-never-updated", bn="BN-S2", kind="statistics")
class RunningVarNeverUpdated(BatchNorm):
    """Updates only the running mean."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        return super().running(s, mean, variance, momentum, count, eps)[0], variance


@fault("updated-twice", bn="BN-S1", kind="statistics", sources=issue("tile-ai/TileOPs#1728"))
class UpdatedTwice(BatchNorm):
    """Takes two steps of the exponential average in one call, as two threads writing the same statistic do."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(super().updated(old, new, momentum), new, momentum)


@fault(
    "first-step-replaces",
    bn="BN-S1",
    kind="statistics",
    sources=issue("google/flax#1360", "patrick-kidger/equinox#659"),
)
class FirstStepReplaces(BatchNorm):
    """Takes fresh running statistics, a mean of zeros, for none, and replaces them by the batch's."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        fresh = self.training and not np.any(mean)
        return super().running(s, mean, variance, 1.0 if fresh else momentum, count, eps)


@fault("step-from-first-statistics", bn="BN-S3", kind="state")
class StepFromFirstStatistics(BatchNorm):
    """Takes every step of a row from the statistics that the first was given, so that only the last one counts."""

    returned: tuple[Array, Array] | None = None
    first: tuple[Array, Array] | None = None

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        if not self.training:
            return super().running(s, mean, variance, momentum, count, eps)
        handed_back = self.returned is not None and all(
            np.array_equal(self.stored(a), self.stored(b)) for a, b in zip(self.returned, (mean, variance), strict=True)
        )
        if not handed_back or self.first is None:
            self.first = mean, variance
        self.returned = super().running(s, *self.first, momentum, count, eps)
        return self.returned

    def stored(self, array: Array) -> Array:
        """As it reads after a round trip through the narrowest dtype it may have been stored in."""
        return array.astype(self.data)


@fault("update-before-use", bn="BN-S5", sources=issue("tenstorrent/tt-metal#45578"))
class UpdateBeforeUse(BatchNorm):
    """Normalises in training with the running statistics, once updated."""

    def mode_statistics(self, x: Array, running_mean: Array, running_var: Array, eps: np.floating) -> Statistics:
        s = super().mode_statistics(x, running_mean, running_var, eps)
        if not self.training:
            return s
        mean, variance = self.updated(running_mean, s.mean, 0.1), self.updated(running_var, s.variance, 0.1)
        return Statistics(mean, variance, self.rstd(variance, eps))


@fault("running-stats-in-training", bn="BN-S5", sources=issue("pytorch/pytorch#49229"))
class RunningStatsInTraining(BatchNorm):
    """Normalises in training with the running statistics, and updates them with the batch's."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        return super().output(x, self.kept, gamma, beta)

    def mode_statistics(self, x: Array, running_mean: Array, running_var: Array, eps: np.floating) -> Statistics:
        self.kept = self.fixed_statistics(x, running_mean, running_var, eps)
        return super().mode_statistics(x, running_mean, running_var, eps)


@fault("single-value-refused", bn="BN-E1", kind="argument")
class SingleValueRefused(BatchNorm):
    """Raises in training where a channel holds one value."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        if x.shape[1] == 1:
            raise ValueError("expected more than one value per channel when training")
        return super().statistics(x, eps)


@fault(
    "empty-batch-nan",
    bn="BN-E2",
    kind="statistics",
    sources=issue("pytorch/pytorch#12013", "google-deepmind/sonnet#125"),
)
class EmptyBatchNan(BatchNorm):
    """Averages over nothing for a batch of no samples, and the running statistics become NaN."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        return super().running(s, mean, variance, momentum, max(count, 1), eps)


@fault("empty-batch-decays", bn="BN-E2", kind="statistics", sources=issue("pytorch/pytorch#12013"))
class EmptyBatchDecays(BatchNorm):
    """Enters zeros into the running statistics for a batch of no samples."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        if self.training and count == 0:
            return self.updated(mean, np.zeros_like(mean), momentum), self.updated(
                variance, np.zeros_like(variance), momentum
            )
        return super().running(s, mean, variance, momentum, count, eps)


@fault("running-mean-of-first-value", bn="BN-L5", kind="statistics")
class RunningMeanOfFirstValue(BatchNorm):
    """Enters the first value of each channel into the running mean."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        self.first = x[:, :1]
        return super().statistics(x, eps)

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        own = Statistics(self.first, s.variance, s.rstd) if self.training and count else s
        return super().running(own, mean, variance, momentum, count, eps)


@fault("running-statistics-of-last-channel", bn="BN-L6", kind="statistics")
class RunningStatisticsOfLastChannel(BatchNorm):
    """Enters the statistics of the last channel into those of every channel."""

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        mean_there, variance_there, rstd_there = (np.zeros_like(z) + z[-1:] for z in (s.mean, s.variance, s.rstd))
        last = Statistics(mean_there, variance_there, rstd_there)
        own = last if self.training and count else s
        return super().running(own, mean, variance, momentum, count, eps)


@fault("gradient-of-running-variance", bn="BN-S5", kind="gradient")
class GradientOfRunningVariance(BatchNorm):
    """Uses the running variance in the backward pass of training."""

    def before(self, stage: str, arrays: Arrays) -> None:
        self.given = arrays[4]

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        if s.fixed or self.given is None:
            return s
        variance = self.given.astype(s.variance.dtype).reshape(-1, 1)
        return Statistics(s.mean, variance, 1 / np.sqrt(variance + eps), s.fixed)
