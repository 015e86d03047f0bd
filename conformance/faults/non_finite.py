"""Faults of NaN and Inf: swallowed, or leaking to other groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from ...adapters.numpy.operators.staged import Arrays, Staged
from ...adapters.numpy.operators.storage import Storage
from ...reference.formats import format_of
from .neighbours import Prepared
from .registry import SIXTEEN_BIT, fault
from .tracking import TwoPaths


def within_range(values: Array, stored: Array) -> Array:
    """The values, an infinity taken for the largest number of its sign that the dtype of ``stored`` has."""
    largest = values.dtype.type(format_of(stored.dtype).largest)
    return np.clip(values, -largest, largest)


def without_nan(values: Array) -> Array:
    """The values, NaN taken for 0."""
    return np.where(np.isnan(values), values.dtype.type(0), values)


@fault("nan-to-zero", ln="CM-N3", bn="CM-N3", kind="non-finite")
class NanToZero(Groups):
    """Takes a NaN in x for 0."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return without_nan(values) if role == "x" else values


@fault("nan-skipped", ln="CM-N3", bn="CM-N3", kind="non-finite")
class NanSkipped(RowSteps):
    """Leaves NaN out of mean and variance, so that only the element itself is NaN."""

    def row_sum(self, terms: Array) -> Array:
        return super().row_sum(without_nan(terms))


@fault("nan-output-zeroed", ln="CM-N3", bn="CM-N3", kind="non-finite")
class NanOutputZeroed(RowSteps):
    """Replaces NaN in y by 0."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = super().affine(xhat, gamma, beta)
        return np.where(np.isnan(y), y.dtype.type(0), y)


@fault("nan-zeroed-where-tracked", everywhere="CM-N3", kind="non-finite")
class NanZeroedWhereTracked(TwoPaths):
    """Replaces NaN in y by 0 where gradients are tracked."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        y = results[0]
        return (without_nan(y), *results[1:]) if stage == "call" and self.tracked and y is not None else results


@fault("nan-zeroed-where-x-is-frozen", ln="CM-N3", bn="CM-N3", kind="non-finite")
class NanZeroedWhereXIsFrozen(Prepared, Groups):
    """Replaces NaN in y by 0 where parameters need a gradient and x needs none."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        y, frozen = results[0], bool(self.wrt) and "x" not in (self.wrt or ())
        return (without_nan(y), *results[1:]) if stage == "call" and frozen and y is not None else results


@fault("infinity-zeroed-where-tracked", everywhere="CM-N4", kind="non-finite")
class InfinityZeroedWhereTracked(TwoPaths):
    """Replaces what is not finite in y by 0 where x is infinite and gradients are tracked."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        x, y = arrays[0], results[0]
        if stage != "call" or not self.tracked or x is None or y is None or not np.isinf(x).any():
            return results
        return np.where(np.isfinite(y), y, y.dtype.type(0)), *results[1:]


@fault("parameter-nan-zeroed-where-tracked", ln="CM-N6", bn="CM-N6", kind="non-finite")
class ParameterNanZeroedWhereTracked(TwoPaths, Groups):
    """Takes a NaN in gamma or beta for 0 where gradients are tracked."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return without_nan(values) if role in ("gamma", "beta") and self.tracked else values


@fault("raises-for-nan-in-a-copy", ln="CM-N3", bn="CM-N3", kind="non-finite")
class RaisesForNanInACopy(Groups):
    """Raises an error for a NaN in x where x is not contiguous, and so copied."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        if role == "x" and not array.flags["C_CONTIGUOUS"] and np.isnan(values).any():
            raise FloatingPointError("x has a NaN")
        return values


@fault("nan-zeroed-in-inference-mode", everywhere="CM-N3", kind="non-finite")
class NanZeroedInInferenceMode(Staged):
    """Replaces NaN in y by 0 in the framework's inference mode."""

    inference = False

    def prepare(self, *, mode: str = "training", wrt: tuple[str, ...] | None = None) -> None:
        """Note the mode of the calls that follow."""
        self.inference = mode == "inference"

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        y = results[0]
        return (without_nan(y), *results[1:]) if stage == "call" and self.inference and y is not None else results


@fault("nan-zeroed-in-a-copy", ln="CM-N3", bn="CM-N3", rs="CM-N3", kind="non-finite")
class NanZeroedInACopy(Staged):
    """Takes a NaN in x for 0 where x is not contiguous, and so copied."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return without_nan(values) if role == "x" and not array.flags["C_CONTIGUOUS"] else values


@fault("dx-zeroed-where-x-is-nan", ln="CM-N3", bn="CM-N3", kind="gradient")
class DxZeroedWhereXIsNan(RowSteps):
    """Sets dx to 0 where x is NaN."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        return np.where(np.isnan(p.x), dx.dtype.type(0), dx)


@fault("nan-zeroed-beside-wide-parameters", ln="CM-N3", bn="CM-N3", kind="non-finite", dtypes=SIXTEEN_BIT)
class NanZeroedBesideWideParameters(RowSteps):
    """Replaces NaN in y by 0 where gamma is wider than x."""

    wide_gamma = False

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = super().affine(xhat, gamma, beta)
        return without_nan(y) if self.wide_gamma else y

    def before(self, stage: str, arrays: Arrays) -> None:
        if stage == "call":
            x, gamma = arrays[:2]
            self.wide_gamma = x is not None and gamma is not None and gamma.dtype != x.dtype


@fault("running-statistics-skip-nan", bn="CM-N3", kind="statistics")
class RunningStatisticsSkipNan(BatchNorm):
    """Leaves the running statistics of a channel as they are where those of the batch are NaN."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return np.where(np.isnan(new), old, super().updated(old, new, momentum))


@fault("running-statistics-nan-to-num", bn="CM-N3", kind="statistics")
class RunningStatisticsNanToNum(BatchNorm):
    """Takes a NaN in the statistics of the batch for 0 where it updates the running ones."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, without_nan(new), momentum)


@fault("running-statistics-skip-infinite", bn="CM-N4", kind="statistics")
class RunningStatisticsSkipInfinite(BatchNorm):
    """Leaves the running statistics of a channel as they are where those of the batch are not finite."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return np.where(np.isfinite(new), super().updated(old, new, momentum), old)


@fault("inf-clipped", everywhere="CM-N4", kind="non-finite")
class InfClipped(Staged):
    """Takes an Inf in x for 1e4, and hands it to parts so."""

    def call(self, x: Array, *arguments: Any, **settings: Any) -> Any:
        finite = np.where(np.isinf(x), np.copysign(x.dtype.type(1e4), x), x)
        return super().call(finite, *arguments, **settings)  # type: ignore[misc]


@fault("parameter-nan-zeroed", everywhere="CM-N6", kind="non-finite")
class ParameterNanZeroed(Groups):
    """Takes a NaN in gamma or beta for 0."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return without_nan(values) if role in ("gamma", "beta") else values


@fault("parameter-infinity-clipped", ln="CM-N6", bn="CM-N6", kind="non-finite")
class ParameterInfinityClipped(Groups):
    """Clips gamma and beta to the finite numbers."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return within_range(values, array) if role in ("gamma", "beta") else values


@fault("gamma-nan-zeroed-in-backward", ln="CM-N6", bn="CM-N6", kind="gradient")
class GammaNanZeroedInBackward(RowSteps):
    """Takes a NaN in gamma for 0 only in dx."""

    def backward_gamma(self, gamma: Array) -> Array:
        return np.where(np.isnan(gamma), gamma.dtype.type(0), super().backward_gamma(gamma))


@fault("running-nan-clamped", bn="CM-N6", kind="non-finite")
class RunningNanClamped(BatchNorm):
    """Keeps the running variance above 0 by a maximum that drops NaN."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return super().fixed_statistics(x, mean, np.fmax(variance, 0), eps)


@fault("running-nan-replaced", bn="CM-N6", kind="statistics")
class RunningNanReplaced(BatchNorm):
    """Begins a running statistic that is NaN anew, with that of the batch."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return np.where(np.isnan(old), new, super().updated(old, new, momentum))


@fault("cotangent-nan-zeroed", everywhere="CM-N7", kind="gradient")
class CotangentNanZeroed(Storage):
    """Takes a NaN in the cotangent for 0."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return without_nan(values) if role == "g" else values


@fault("cotangent-infinity-clipped", ln="CM-N7", bn="CM-N7", kind="gradient")
class CotangentInfinityClipped(Storage):
    """Clips the cotangent to the finite numbers."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return within_range(values, array) if role == "g" else values


@fault("parameter-sum-skips-nan", ln="CM-N7", bn="CM-N7", kind="gradient")
class ParameterSumSkipsNan(RowSteps):
    """Leaves NaN out of the sums that are the gradients of gamma and beta."""

    def parameter_sum(self, terms: Array) -> Array:
        return super().parameter_sum(without_nan(terms))


@fault("nan-leaks-to-neighbour", ln="CM-N1", bn="CM-N1", kind="non-finite")
class NanLeaksToNeighbour(RowSteps):
    """Adds zero times the next group's reciprocal root to each group's, as a masked reduction over two groups does."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        r = super().rstd(variance, eps)
        return r + 0 * np.roll(r, -1, axis=0)


@fault("nan-leaks-to-batch", ln="CM-N1", bn="CM-N1", kind="non-finite")
class NanLeaksToBatch(RowSteps):
    """Adds zero times the sum of all of y to y."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = super().affine(xhat, gamma, beta)
        return y + 0 * np.add.reduce(y, axis=None)


@fault("nan-leaks-in-backward", ln="CM-N1", bn="CM-N1", kind="non-finite")
class NanLeaksInBackward(RowSteps):
    """Adds zero times the sum of all of dx to dx."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        return dx + 0 * np.add.reduce(dx, axis=None)


@fault("nan-leaks-in-inference", bn="CM-N1", kind="non-finite")
class NanLeaksInInference(BatchNorm):
    """Adds zero times the channel's sum to every element in inference."""

    def normalise(self, x: Array, s: Statistics) -> Array:
        xhat = super().normalise(x, s)
        return xhat + 0 * self.row_sum(x) if s.fixed else xhat


@fault("running-statistics-kept-beside-nan", bn="CM-N1", kind="statistics")
class RunningStatisticsKeptBesideNan(BatchNorm):
    """Leaves the running statistics of all other channels as they are where one channel has a NaN."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        made = super().updated(old, new, momentum)
        return np.where(np.isnan(new), made, old) if np.isnan(new).any() else made
