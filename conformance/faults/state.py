"""Faults of state: results that depend on other calls, or are changed by them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, Statistics
from ...adapters.numpy.operators.staged import Arrays, Staged
from .neighbours import next_up
from .registry import WIDE, fault, issue


class Buffers(Staged):
    """Results handed out in buffers that the next call of the same shape writes again."""

    def __init__(self) -> None:
        self.buffers: dict[tuple[object, ...], Array] = {}

    def shared(self, name: str, array: Array | None) -> Array | None:
        """The buffer of this name, shape and dtype, holding the array's values."""
        if array is None:
            return None
        buffer = self.buffers.setdefault((name, array.shape, array.dtype), np.empty_like(array))
        buffer[...] = array
        return buffer


@fault("output-buffer-shared", ln="CM-P4", bn="CM-P4", rs="CM-P4", pr="CM-P4", hw="CM-P4", kind="state")
class OutputBufferShared(Buffers):
    """Returns y in a buffer that the next call of the same shape overwrites."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.shared("y", results[0]), *results[1:]) if stage == "call" else results


@fault("gradient-buffer-shared", ln="CM-P4", bn="CM-P4", po="CM-P4", mh="CM-P4", kind="state")
class GradientBufferShared(Buffers):
    """Returns dx in a buffer that the next backward pass of the same shape overwrites."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.shared("dx", results[0]), *results[1:]) if stage == "vjp" else results


@fault("parameter-gradient-buffer-shared", ln="CM-P4", bn="CM-P4", kind="state")
class ParameterGradientBufferShared(Buffers):
    """Returns the gradients of parameters in buffers that the next backward pass of the same shape overwrites."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage != "vjp":
            return results
        return results[0], *(self.shared(f"d{place}", one) for place, one in enumerate(results[1:]))


@fault("running-buffer-shared", bn="CM-P4", kind="state")
class RunningBufferShared(Buffers):
    """Returns the running statistics in buffers that the next call overwrites."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage != "call":
            return results
        return results[0], self.shared("mean", results[1]), self.shared("variance", results[2])


@fault("inference-buffer-shared", bn="CM-P4", kind="state")
class InferenceBufferShared(Buffers, BatchNorm):
    """Returns y from inference in a buffer that the next call of the same shape overwrites."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.shared("y", results[0]), *results[1:]) if stage == "call" and not self.training else results


@fault("saved-statistics-shared", everywhere="CM-P5", kind="state")
class SavedStatisticsShared(Groups):
    """Keeps one set of saved statistics, so that a gradient uses those of the latest forward pass."""

    kept: Statistics | None = None

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        own = super().statistics(x, eps)
        if self.stage == "call":
            self.kept = own
        elif self.kept is not None and len(self.kept.mean) == len(x) and self.kept.mean.dtype == x.dtype:
            return self.kept
        return own


@fault("saved-statistics-in-slots", everywhere="CM-P5", kind="state")
class SavedStatisticsInSlots(Groups):
    """Keeps the saved statistics of four calls, so that a gradient of an earlier one uses those of a later."""

    def __init__(self) -> None:
        self.kept: list[Statistics] = []

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        own = super().statistics(x, eps)
        if self.stage == "call":
            self.kept = [*self.kept[-3:], own]
            return own
        alike = [one for one in self.kept if one.rstd.shape == own.rstd.shape and one.rstd.dtype == own.rstd.dtype]
        lost = len(alike) == 4 and not any(np.array_equal(one.rstd, own.rstd) for one in alike)
        return alike[0] if self.stage == "vjp" and lost else own


@fault("saved-statistics-spoilt", everywhere="CM-P5", kind="state")
class SavedStatisticsSpoilt(Groups):
    """Works in place on what the call saved for its backward pass, so that a second gradient of the call is another."""

    def __init__(self) -> None:
        self.saved: dict[tuple[object, ...], Statistics] = {}

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        own, key = super().statistics(x, eps), (x.shape, x.dtype, float(eps), hash(x.tobytes()))
        if self.stage == "call":
            self.saved[key] = own
        elif self.stage == "vjp" and key in self.saved:
            saved = self.saved[key]
            own = Statistics(saved.mean, saved.variance, saved.rstd.copy())
            np.multiply(saved.rstd, 2, out=saved.rstd)
        return own


@fault("gamma-of-last-call", ln="CM-P5", bn="CM-P5", kind="state")
class GammaOfLastCall(Groups):
    """Keeps one gamma, so that a gradient uses that of the latest forward pass."""

    kept: Array | None = None

    def before(self, stage: str, arrays: Arrays) -> None:
        if stage == "call" and arrays[1] is not None:
            self.kept = np.array(arrays[1])

    def backward_gamma(self, gamma: Array) -> Array:
        if self.kept is None or self.kept.size != self.layout.parameters:
            return gamma
        kept = self.layout.parameter_rows(self.kept.astype(gamma.dtype))
        return kept if kept.shape == gamma.shape else gamma


@fault("eps-of-first-call", everywhere="CM-P2", kind="state")
class EpsOfFirstCall(Groups):
    """Uses the eps of the first call of the same shape, as a kernel built for that shape does."""

    def __init__(self) -> None:
        self.kept: dict[object, np.floating] = {}

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x, self.kept.setdefault((x.shape, x.dtype), eps))


class OfFirstCall(Groups):
    """Uses a setting of the first call of the same shape."""

    setting: str

    def __init__(self) -> None:
        self.kept: dict[object, Any] = {}

    def begin(self, x: Array, settings: Mapping[str, Any]) -> None:
        own = self.kept.setdefault((x.shape, x.dtype), settings[self.setting])
        super().begin(x, {**settings, self.setting: own})


@fault("momentum-of-first-call", bn="CM-P2", kind="state")
class MomentumOfFirstCall(OfFirstCall):
    """Uses the momentum of the first call of the same shape."""

    setting = "momentum"


@fault("mode-of-first-call", bn="CM-P2", kind="state")
class ModeOfFirstCall(OfFirstCall):
    """Stays in the mode of the first call of the same shape."""

    setting = "training"


@fault("groups-of-first-call", gn="CM-P2", kind="state")
class GroupsOfFirstCall(OfFirstCall):
    """Forms as many groups as the first call of the same shape."""

    setting = "groups"


@fault("axes-of-first-call", ln="CM-P2", rm="CM-P2", kind="state", apart=("gn", "in"))
class AxesOfFirstCall(OfFirstCall):
    """Normalises over the axes of the first call of the same shape."""

    setting = "axes"


class Counted(Staged):
    """Counts the forward passes."""

    calls = 0

    def before(self, stage: str, arrays: Arrays) -> None:
        self.calls += stage == "call"


@fault(
    "drifts-after-ten-calls",
    ln="CM-P2",
    bn="CM-P2",
    pr="CM-P2",
    po="CM-P2",
    hw="CM-P2",
    kind="state",
    sources=issue("karpathy/llm.c#852"),
)
class DriftsAfterTenCalls(Counted):
    """Adds to the first value of y what a counter holds, from the eleventh call on."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        y = results[0]
        if stage == "call" and self.calls > 10 and y is not None and y.size:
            y.flat[0] = abs(float(y.flat[0])) + 1 + self.calls % 7
        return results


@fault("gradient-drifts", everywhere="CM-P2", kind="state")
class GradientDrifts(Staged):
    """Adds to the first value of the last gradient of all what a counter holds, from the second backward pass on."""

    pulls = 0

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        self.pulls += stage == "vjp"
        last = results[-1]
        if stage == "vjp" and self.pulls > 1 and last is not None and last.size:
            last.flat[0] = abs(float(last.flat[0])) + 1 + self.pulls % 7
        return results


@fault("gradient-lost-once-in-three", ln="CM-P2", bn="CM-P2", kind="state")
class GradientLostOnceInThree(Groups):
    """Returns no dgamma in every third backward pass."""

    pulls = 0

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        self.pulls += stage == "vjp"
        return (results[0], None, *results[2:]) if stage == "vjp" and self.pulls % 3 == 0 else results


@fault("race-once-in-sixty", ln="CM-P2", bn="CM-P2", kind="state", sources=issue("tile-ai/TileOPs#1728"))
class RaceOnceInSixty(Counted, Groups):
    """Loses a part of the last group's sum in every sixtieth call, as a race would."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        r = super().rstd(variance, eps)
        if self.calls % 60 == 0 and r.size:
            r[-1] *= r.dtype.type(1.25)
        return r


@fault(
    "last-bit-on-alternate-calls",
    ln="CM-P3",
    bn="CM-P3",
    rs="CM-P3",
    pr="CM-P3",
    po="CM-P3",
    hw="CM-P3",
    kind="state",
    dtypes=WIDE,
    sources=issue("pytorch/pytorch#53691"),
)
class LastBitOnAlternateCalls(Counted):
    """Differs in the last bit of y on every second call."""

    every = 2

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        y = results[0]
        if stage != "call" or self.calls % self.every or y is None:
            return results
        # Infinity has no last bit: the number next to it is a finite one.
        return (np.where(np.isfinite(y), next_up(y), y), *results[1:])


@fault(
    "last-bit-once-in-sixty", ln="CM-P3", bn="CM-P3", kind="state", dtypes=WIDE, sources=issue("pytorch/pytorch#53691")
)
class LastBitOnceInSixty(LastBitOnAlternateCalls):
    """Differs in the last bit of y in every sixtieth call."""

    every = 60


@fault("dgamma-accumulates", ln="CM-P2", bn="CM-P2", kind="state")
class DgammaAccumulates(Groups):
    """Adds dgamma to that of the last backward pass of the same shape."""

    kept: Array | None = None

    def gamma_gradient(self, p: Pull) -> Array:
        own = super().gamma_gradient(p)
        if self.kept is not None and self.kept.shape == own.shape and self.kept.dtype == own.dtype:
            own = own + self.kept
        self.kept = own
        return own


@fault("results-kept-by-first-values", ln="CM-P2", bn="CM-P2", kind="state")
class ResultsKeptByFirstValues(Groups):
    """Keeps results under the shape and the first eight values of x, and hands them out again for such an x."""

    def __init__(self) -> None:
        self.kept: dict[tuple[object, ...], Arrays] = {}

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        x = arrays[0]
        assert x is not None
        if stage not in ("call", "vjp") or x.size <= 8:
            return results
        rest = tuple(None if array is None else (array.dtype.name, array.tobytes()) for array in arrays[1:])
        key = (stage, x.dtype.name, x.shape, x.reshape(-1)[:8].tobytes(), rest)
        return tuple(None if one is None else one.copy() for one in self.kept.setdefault(key, results))


class StatisticsKept(Groups):
    """Keeps the statistics of the last x, and takes them for those of an x with the same sign."""

    #: The statistics of an x with no more values are not kept.
    most_not_kept = 0
    handed: Array | None = None
    #: The sign, and what it stands for; and the x itself, so that nothing else has its identity or its memory.
    kept: tuple[object, Statistics, Array] | None = None

    def sign(self, x: Array) -> object:
        """What x is recognised by."""
        raise NotImplementedError

    def before(self, stage: str, arrays: Arrays) -> None:
        self.handed = arrays[0]

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        assert self.handed is not None
        if self.handed.size <= self.most_not_kept:
            return super().statistics(x, eps)
        key = self.sign(self.handed), self.handed.shape, x.shape, x.dtype, float(eps)
        if self.kept is None or self.kept[0] != key:
            self.kept = key, super().statistics(x, eps), self.handed
        return self.kept[1]


@fault("statistics-kept-by-sum", ln="CM-P2", bn="CM-P2", kind="state")
class StatisticsKeptBySum(StatisticsKept):
    """Keeps statistics under the sum of x, and takes them for those of an x with the same sum."""

    def sign(self, x: Array) -> object:
        values = x.astype(np.float64).reshape(-1)
        return math.fsum(values) if np.isfinite(values).all() else values.tobytes()


@fault("statistics-of-large-calls-kept-by-sum", ln="CM-P2", bn="CM-P2", kind="state")
class StatisticsOfLargeCallsKeptBySum(StatisticsKeptBySum):
    """Keeps statistics under the sum of x where x has more than 64 values."""

    most_not_kept = 64


@fault("statistics-kept-by-identity", ln="CM-P2", bn="CM-P2", kind="state")
class StatisticsKeptByIdentity(StatisticsKept):
    """Keeps statistics on the array object x, and takes them for those of what is written into it later."""

    def sign(self, x: Array) -> object:
        return id(x)


@fault("statistics-of-large-calls-kept-by-identity", ln="CM-P2", bn="CM-P2", kind="state")
class StatisticsOfLargeCallsKeptByIdentity(StatisticsKeptByIdentity):
    """Keeps statistics on the array object x where x has more than 1000 values."""

    most_not_kept = 1000


@fault("statistics-kept-by-address", ln="CM-P2", bn="CM-P2", kind="state")
class StatisticsKeptByAddress(StatisticsKept):
    """Keeps statistics under the address and the shape of x, and takes them for those of any array there."""

    def sign(self, x: Array) -> object:
        return x.__array_interface__["data"][0]


@fault("scale-kept-by-identity", bn="CM-P2", kind="state")
class ScaleKeptByIdentity(BatchNorm):
    """Keeps 1 / sqrt(running_var + eps) on the array object, and misses what is written into it later."""

    handed: Array | None = None
    kept: tuple[object, Array, Array] | None = None

    def before(self, stage: str, arrays: Arrays) -> None:
        self.handed = arrays[4]

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        assert self.handed is not None
        key = id(self.handed), variance.shape, variance.dtype, float(eps)
        if self.kept is None or self.kept[0] != key:
            self.kept = key, self.rstd(variance, eps), self.handed
        return Statistics(mean, variance, self.kept[1], fixed=True)


@fault("running-mean-of-last-call", bn="CM-P2", kind="state")
class RunningMeanOfLastCall(BatchNorm):
    """Keeps its own running mean from call to call and ignores the given one after the first."""

    kept: Array | None = None

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        if self.kept is not None and self.kept.shape == mean.shape and self.kept.dtype == mean.dtype:
            mean = self.kept
        new_mean, new_variance = super().running(s, mean, variance, momentum, count, eps)
        self.kept = new_mean
        return new_mean, new_variance
