"""Faults of one of two paths: what is returned depends on whether gradients are to be taken."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, RowSteps
from ...adapters.numpy.operators.staged import Arrays, Staged
from .layouts import read_on
from .neighbours import Prepared
from .registry import fault, issue
from .state import StatisticsKept


class TwoPaths(Staged):
    """A function that sees whether gradients are tracked in the call that it is in."""

    tracked = False

    def prepare(self, *, mode: str = "training", wrt: tuple[str, ...] | None = None) -> None:
        """Note whether a gradient of the calls that follow is to be taken."""
        self.tracked = mode == "training" and bool(wrt)


@fault(
    "rounded-where-tracked",
    everywhere="CM-P6",
    kind="state",
    dtypes=("float16", "float32", "float64"),  # bfloat16 has these digits
    sources=issue("pytorch/pytorch#128209"),
)
class RoundedWhereTracked(TwoPaths):
    """Returns y rounded to the eight digits of bfloat16 where gradients are tracked."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        y = results[0]
        if stage != "call" or not self.tracked or y is None:
            return results
        fraction, exponent = np.frexp(y)
        return np.ldexp(np.round(fraction * 256) / 256, exponent).astype(y.dtype), *results[1:]


@fault("eps-missing-where-tracked", ln="CM-P6", bn="CM-P6", kind="state")
class EpsMissingWhereTracked(TwoPaths, Groups):
    """Leaves eps out of y where gradients are tracked."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, eps * 0 if self.tracked and self.stage == "call" else eps)


@fault("running-statistics-kept-where-untracked", bn="CM-P6", kind="state")
class RunningStatisticsKeptWhereUntracked(TwoPaths, BatchNorm):
    """Returns the running statistics as they were where no gradients are tracked, in training too."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage != "call" or self.tracked:
            return results
        return results[0], *(None if one is None else one.copy() for one in arrays[3:5])


@fault("running-statistics-kept-where-gamma-is-frozen", bn="CM-P6", kind="state")
class RunningStatisticsKeptWhereGammaIsFrozen(Prepared, BatchNorm):
    """Returns the running statistics as they were where x needs a gradient and gamma needs none, in training too."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        frozen = bool(self.wrt) and arrays[1] is not None and "gamma" not in (self.wrt or ())
        if stage != "call" or not frozen:
            return results
        return results[0], *(None if one is None else one.copy() for one in arrays[3:5])


@fault("strides-ignored-where-untracked", ln="CM-V1", bn="CM-V1", rs="CM-V1", kind="layout")
class StridesIgnoredWhereUntracked(TwoPaths):
    """Reads x as if it were contiguous where no gradients are tracked."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and not self.tracked else array, role)


@fault("statistics-kept-by-address-where-untracked", ln="CM-P2", bn="CM-P2", kind="state")
class StatisticsKeptByAddressWhereUntracked(TwoPaths, StatisticsKept):
    """Keeps statistics under the address and the shape of x where no gradients are tracked."""

    def sign(self, x: Array) -> object:
        return object() if self.tracked else x.__array_interface__["data"][0]


@fault("strides-ignored-in-inference-mode", ln="CM-V1", bn="CM-V1", kind="layout")
class StridesIgnoredInInferenceMode(Prepared, Groups):
    """Reads x as if it were contiguous in the framework's inference mode."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and self.mode == "inference" else array, role)


@fault("one-pass-in-inference-mode", ln="CM-P6", bn="CM-P6", apart=("rm",))
class OnePassInInferenceMode(Prepared, RowSteps):
    """Takes the variance as mean(x^2) - mean(x)^2 in the framework's inference mode."""

    def variance(self, x: Array, mean: Array) -> Array:
        if self.mode != "inference":
            return super().variance(x, mean)
        return np.maximum(self.row_mean(x * x) - mean * mean, 0)


@fault("beta-needs-gamma-in-inference-mode", ln="CM-P6", bn="CM-P6", apart=("rm",))
class BetaNeedsGammaInInferenceMode(Prepared, RowSteps):
    """Leaves beta out where gamma is None, in the framework's inference mode."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(xhat, gamma, None if gamma is None and self.mode == "inference" else beta)
