"""Faults in which a result depends on what stands beside it: other groups, other features, their order."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from ...adapters.numpy.operators.staged import Arrays, Staged
from .registry import WIDE, fault, issue


def next_up(array: Array) -> Array:
    """The next larger number of the dtype, elementwise."""
    return np.nextafter(array, np.inf, dtype=array.dtype)


@fault("pair-shares-rstd", ln="LN-L5", bn="BN-L6")
class PairSharesRstd(RowSteps):
    """Uses the reciprocal root of the first of two neighbouring groups for both."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        s = super().statistics(x, eps)
        return Statistics(s.mean, s.variance, s.rstd[np.arange(len(x)) // 2 * 2])


@fault("last-of-odd-count", ln="LN-L7", bn="BN-L6")
class LastOfOddCount(RowSteps):
    """Gives the last of an odd number of groups, more than one, the reciprocal root of the one before."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        r = super().rstd(variance, eps)
        if len(r) % 2 and len(r) > 1:
            r[-1] = r[-2]
        return r


@fault("prescale-by-batch", ln="LN-L16", bn="BN-L6")
class PrescaleByBatch(RowSteps):
    """Divides the whole batch by its largest magnitude, up to a power of two, and adds eps as it is."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        if not variance.size:
            return super().rstd(variance, eps)
        scale = np.exp2(np.floor(np.log2(np.maximum(np.max(variance), variance.dtype.type(1e-30))) / 2))
        return super().rstd(variance / (scale * scale), eps) / scale


@fault("statistics-of-batch-blend", ln="LN-L17")
class StatisticsOfBatchBlend(Groups):
    """Blends a tenth of the variance averaged over the batch into each group's."""

    def variance(self, x: Array, mean: Array) -> Array:
        own = super().variance(x, mean)
        if not own.size:
            return own
        return own * own.dtype.type(0.9) + np.mean(own, keepdims=True) * own.dtype.type(0.1)


@fault("statistics-of-first-half", ln="LN-L9", bn="BN-L5")
class StatisticsOfFirstHalf(RowSteps):
    """Takes mean and variance from the first half of the values: the last exchange between lanes is missing."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x[:, : -(-x.shape[1] // 2)], eps)


@fault("odd-groups-last-bit", ln="LN-L6", dtypes=WIDE)
class OddGroupsLastBit(Groups):
    """Takes another instruction path for every second group, whose reciprocal root differs in the last bit."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        r = super().rstd(variance, eps)
        return np.where(np.arange(len(r))[:, None] % 2 == 1, next_up(r), r)


@fault("batch-size-last-bit", ln="LN-L8", dtypes=WIDE, sources=("https://github.com/vllm-project/vllm/pull/48391",))
class BatchSizeLastBit(Groups):
    """Chooses its order of summation by the number of groups, which changes the last bit."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        r = super().rstd(variance, eps)
        return next_up(r) if len(r) > 1 else r


class Prepared(Staged):
    """A function that sees the mode of a call, and which inputs need a gradient."""

    mode = "training"
    wrt: tuple[str, ...] | None = None

    def prepare(self, *, mode: str = "training", wrt: tuple[str, ...] | None = None) -> None:
        """Note both for the calls that follow."""
        self.mode, self.wrt = mode, wrt


@fault("inference-uses-last-training-statistics", ln="LN-L15", kind="state", sources=issue("Hsword/Hetu#17"))
class InferenceUsesLastTrainingStatistics(Prepared, Groups):
    """Normalises in inference mode with the mean and variance of the last call in training mode, where shapes fit."""

    kept: Statistics | None = None

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        s = super().statistics(x, eps)
        if self.mode == "training":
            self.kept = s
        elif self.kept is not None and len(self.kept.mean) == len(x):
            return self.kept
        return s


@fault("inference-eps-missing", ln="LN-L15", kind="state")
class InferenceEpsMissing(Prepared, Groups):
    """Leaves eps out in inference mode."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps if self.mode == "training" else eps * 0)


@fault(
    "frozen-input",
    ln="LN-G11",
    bn="BN-G12",
    kind="gradient",
    sources=issue("pytorch/pytorch#183825", "pytorch/pytorch#183893"),
)
class FrozenInput(Prepared, RowSteps):
    """Leaves the reciprocal root out of dgamma where x needs no gradient."""

    def gamma_gradient(self, p: Pull) -> Array:
        if self.wrt is None or "x" in self.wrt:
            return super().gamma_gradient(p)
        return self.parameter_sum(p.g * (p.x - p.statistics.mean))


@fault("frozen-parameters", ln="LN-G11", bn="BN-G12", kind="gradient")
class FrozenParameters(Prepared, RowSteps):
    """Takes the statistics for constants in dx where gamma needs no gradient."""

    def input_gradient(self, p: Pull) -> Array:
        if self.wrt is None or "gamma" in self.wrt or "beta" in self.wrt:
            return super().input_gradient(p)
        return p.statistics.rstd * p.h


@fault("frozen-beta-without-gamma", ln="LN-G11", bn="BN-G12", kind="gradient", apart=("rm",))
class FrozenBetaWithoutGamma(FrozenParameters):
    """Takes the statistics for constants in dx where gamma is None and beta needs no gradient."""

    gamma: Array | None = None

    def before(self, stage: str, arrays: Arrays) -> None:
        self.gamma = arrays[1]

    def input_gradient(self, p: Pull) -> Array:
        return super().input_gradient(p) if self.gamma is None else RowSteps.input_gradient(self, p)


@fault("frozen-beta", ln="LN-G11", bn="BN-G12", kind="gradient", apart=("rm",))
class FrozenBeta(FrozenParameters):
    """Takes the statistics for constants in dx where x and gamma need a gradient, and beta needs none."""

    def before(self, stage: str, arrays: Arrays) -> None:
        self.beta = arrays[2]

    def input_gradient(self, p: Pull) -> Array:
        asked = self.wrt is not None and set(self.wrt) == {"x", "gamma"}
        return p.statistics.rstd * p.h if asked and self.beta is not None else RowSteps.input_gradient(self, p)
