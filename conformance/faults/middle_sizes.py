"""Faults of the sizes that most layers have, between small cases and long rows, and of products of extents."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from ...adapters.numpy.operators.staged import Arrays
from .axes import mean_over
from .layouts import read_on
from .mutation import overwrite
from .neighbours import Prepared
from .registry import WIDE, fault


def middle(count: int) -> bool:
    """Whether a count lies past the small cases, and before the long ones."""
    return 130 <= count <= 4000


# One thing at a time that small calls and long ones do right.


@fault("eps-on-std-in-the-middle", everywhere="CM-S1", kind="size")
class EpsOnStdInTheMiddle(RowSteps):
    """Adds eps to the standard deviation where a group has 130 to 4000 values."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        s = super().statistics(x, eps)
        return Statistics(s.mean, s.variance, 1 / (np.sqrt(s.variance) + eps)) if middle(x.shape[1]) else s


@fault("beta-needs-gamma-in-the-middle", everywhere="CM-S1", kind="size", apart=("rm",))
class BetaNeedsGammaInTheMiddle(RowSteps):
    """Drops beta where gamma is None and a group has 130 to 4000 values."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        return super().output(x, s, gamma, None if gamma is None and middle(x.shape[1]) else beta)


@fault("beta-needs-gamma-of-many-groups", ln="CM-S1", bn="CM-S1", kind="size", apart=("rm",))
class BetaNeedsGammaOfManyGroups(RowSteps):
    """Drops beta where gamma is None and there are 32 to 1000 groups."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        return super().output(x, s, gamma, None if gamma is None and 32 <= len(x) <= 1000 else beta)


# In 16 bits, computed on in float32, what is lost there is below the rounding of the result.
@fault("one-pass-beyond-300", ln="CM-S1", bn="CM-S1", kind="size", apart=("rm",), dtypes=WIDE)
class OnePassBeyond300(RowSteps):
    """Takes the variance as max(mean(x^2) - mean(x)^2, 0) where a group has more than 300 values."""

    def variance(self, x: Array, mean: Array) -> Array:
        if x.shape[1] <= 300:
            return super().variance(x, mean)
        return np.maximum(self.row_mean(x * x) - mean * mean, 0)


# In float16 the smallest numbers lie too near to 1e-12 for a block, whose y is a sum or of a sum.
@fault("eps-floor-from-1024", pr="CM-S1", po="CM-S1", kind="size", dtypes=("bfloat16", *WIDE))
@fault("eps-floor-from-1024", everywhere="CM-S1", kind="size", apart=("pr", "po"))
class EpsFloorFrom1024(RowSteps):
    """Takes 1e-12 for a smaller eps where a group has 1024 values or more."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x, np.maximum(eps, x.dtype.type(1e-12)) if x.shape[1] >= 1024 else eps)


@fault("x-overwritten-in-the-middle", ln="CM-P1", bn="CM-P1", kind="state")
class XOverwrittenInTheMiddle(Groups):
    """Works in place where a group has 130 to 4000 values: x holds y afterwards."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "call" and middle(self.layout.size):
            overwrite(arrays[0], results[0])
        return results


@fault("strides-ignored-in-the-middle", ln="CM-V1", bn="CM-V1", kind="layout")
class StridesIgnoredInTheMiddle(Groups):
    """Reads x as if it were contiguous where a group has 130 to 4000 values."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and middle(self.layout.size) else array, role)


# Tails. What stands apart from instance_norm shows there in other cases too: a parameter's sum has such tails.


@fault("tail-of-three-masked", ln="CM-S1", bn="CM-S1", kind="size", apart=("in",))
class TailOfThreeMasked(RowSteps):
    """Sums in vectors of eight, and loses the last of three values that are left behind the last vector."""

    def row_sum(self, terms: Array) -> Array:
        count = terms.shape[1]
        return super().row_sum(terms[:, :-1] if count > 8 and count % 8 == 3 else terms)


@fault("tail-of-fourteen-masked", ln="CM-S1", bn="CM-S1", kind="size")
class TailOfFourteenMasked(RowSteps):
    """Sums several vectors of sixteen, and loses the last of ten to fourteen values behind the last one."""

    def row_sum(self, terms: Array) -> Array:
        count = terms.shape[1]
        return super().row_sum(terms[:, :-1] if count >= 64 and 10 <= count % 16 <= 14 else terms)


# Products of extents.


@fault("gamma-beyond-512-of-images", bn="CM-S1", kind="size")
class GammaBeyond512OfImages(BatchNorm):
    """Uses gamma and beta of channel c - 512 from the 513th channel of an x with four axes on."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if array is not None and role in ("gamma", "beta") and len(self.shape) == 4:
            array = array[np.arange(len(array)) % 512]
        return super().parameter(array, role)


@fault("running-mean-beyond-512-of-images", bn="CM-S1", kind="size")
class RunningMeanBeyond512OfImages(BatchNorm):
    """Uses the running mean of channel c - 512 in inference, if x has four axes and more than 512 channels."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if array is not None and role == "running_mean" and not self.training and len(self.shape) == 4:
            array = array[np.arange(len(array)) % 512]
        return super().parameter(array, role)


@fault("sample-and-channel-in-one-index", in_="CM-S1", kind="size")
class SampleAndChannelInOneIndex(Groups):
    """Writes the first sample's values to later samples from the 1,025th channel on."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        y = super().output(x, s, gamma, beta)
        of_samples = y.reshape(-1, self.layout.parameters, self.layout.size)
        of_samples[1:, 1024:] = of_samples[:1, 1024:]
        return y


@fault("gamma-of-the-group-channels-last", gn="CM-S1", kind="size")
class GammaOfTheGroupChannelsLast(Groups):
    """Uses one gamma for all channels of a group, where there are 17 to 1000 channels behind positions."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        last = self.channel_axis == len(self.shape) - 1 > 1
        if array is not None and role == "gamma" and last and 16 < len(array) <= 1000:
            groups = self.settings["groups"]
            array = np.repeat(array.reshape(groups, -1)[:, 0], len(array) // groups)
        return super().parameter(array, role)


@fault("parameters-along-equal-last-axis", bn="BN-F1", gn="GN-F5")
class ParametersAlongEqualLastAxis(Groups):
    """Lays gamma and beta along the last of four axes or more, where that is as long as the channels."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        equal = array is not None and len(self.shape) > 3 and self.shape[-1] == len(array)
        if array is None or not equal or role not in ("gamma", "beta"):
            return super().parameter(array, role)
        return self.layout.rows(np.broadcast_to(self.read(array, role), self.shape))


# Derivatives of groups with several axes, of rows along several axes, and of longer groups.


class _InPart(Groups):
    """Means that are taken in another way in some of the steps."""

    partly = False

    def mean_of_part(self, terms: Array) -> Array:
        """The mean in these steps."""
        raise NotImplementedError

    def row_mean(self, terms: Array) -> Array:
        return self.mean_of_part(terms) if self.partly else super().row_mean(terms)


class _LastAxis(_InPart):
    def mean_of_part(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, (-1,))


@fault("double-backward-last-axis", ln="LN-G9", apart=("gn", "in"), kind="second-order")
class DoubleBackwardLastAxis(_LastAxis):
    """Takes the means of the curvature only over the last axis."""

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        self.partly = True
        found = super().curvature(p, a, projected)
        self.partly = False
        return found


@fault("jvp-last-axis", ln="LN-G10", apart=("gn", "in"), kind="tangent")
class JvpLastAxis(_LastAxis):
    """Takes the means of forward mode only over the last axis."""

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        self.partly = True
        found = super().tangent(p, tx, tgamma, tbeta)
        self.partly = False
        return found


@fault("jvp-of-64", ln="LN-G10", bn="BN-G11", kind="tangent")
class JvpOf64(_InPart):
    """Takes the means of forward mode over the first 64 values of a group."""

    def mean_of_part(self, terms: Array) -> Array:
        return np.add.reduce(terms[:, :64], axis=1, keepdims=True) / terms.dtype.type(min(terms.shape[1], 64))

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        self.partly = True
        found = super().tangent(p, tx, tgamma, tbeta)
        self.partly = False
        return found


@fault("double-backward-last-rows", ln="LN-G9", apart=("gn", "in"), kind="second-order")
class DoubleBackwardLastRows(Groups):
    """Sums only over the first leading axis where dx is differentiated with respect to gamma."""

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        x_bar, gamma_bar, g_bar = super().second_order(p, a, b, c)
        if len(self.layout.before) > 1:
            each = self.layout.count // self.shape[0]
            last = np.arange(self.layout.count) % each == each - 1
            s = p.statistics
            gamma_bar = self.parameter_sum(p.g * (s.rstd * self.project(a, p.xhat, s)) * last[:, None])
        return x_bar, gamma_bar, g_bar


@fault("frozen-input-tail", ln="LN-G11", bn="BN-G12", kind="gradient", apart=("in",))
class FrozenInputTail(Prepared, Groups):
    """Drops what is behind the last block of 32 terms from the gradients of parameters, where x needs none."""

    def parameter_sum(self, terms: Array) -> Array:
        shared = self.by_parameter(terms)
        count = shared.shape[1]
        whole = self.wrt is None or "x" in self.wrt or count <= 32
        return self.shared_sum(shared if whole else shared[:, : count // 32 * 32])
