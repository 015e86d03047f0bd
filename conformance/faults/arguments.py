"""Faults of the contract: what is accepted, what is refused, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Arrays, Groups
from ...adapters.numpy.operators.rows import Array
from ...adapters.numpy.operators.staged import Arrays as Handed
from ...adapters.numpy.operators.staged import Staged
from .registry import fault, issue


@fault("gamma-read-cyclically", ln="CM-A1", bn="CM-A1", kind="argument", sources=issue("apple/coremltools#2807"))
class GammaReadCyclically(Groups):
    """Accepts parameters and statistics of any length and starts them again at their end."""

    def check(self, x: Array, parameters: Arrays, likewise: Arrays, settings: Mapping[str, Any]) -> None:
        super().check(x, {}, likewise, settings)

    def parameter(self, array: Array | None, role: str) -> Array | None:
        return super().parameter(None if array is None else np.resize(array, self.layout.parameter_shape), role)


@fault("parameters-broadcast", everywhere="CM-A1", kind="argument", sources=issue("apple/coremltools#2807"))
class ParametersBroadcast(Groups):
    """Accepts a gamma or beta of one element and broadcasts it."""

    def check(self, x: Array, parameters: Arrays, likewise: Arrays, settings: Mapping[str, Any]) -> None:
        many = {name: array if array is None or array.size != 1 else None for name, array in parameters.items()}
        super().check(x, many, likewise, settings)

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if array is not None and array.size == 1:
            array = np.broadcast_to(array.reshape(-1)[0], self.layout.parameter_shape)
        return super().parameter(array, role)


@fault(
    "eps-unchecked", everywhere="CM-A2", kind="argument", sources=issue("pytorch/pytorch#166405", "ml-explore/mlx#4312")
)
class EpsUnchecked(Groups):
    """Computes with whatever eps it is handed."""

    def check(self, x: Array, parameters: Arrays, likewise: Arrays, settings: Mapping[str, Any]) -> None:
        super().check(x, parameters, likewise, {**settings, "eps": 0.0})


@fault("eps-by-magnitude", ln="CM-A2", bn="CM-A2", kind="argument")
class EpsByMagnitude(EpsUnchecked):
    """Takes an eps by its magnitude, so that one of the wrong sign goes unnoticed."""

    def number(self, value: float) -> np.floating:
        return super().number(abs(value))


@fault("momentum-unchecked", bn="BN-A1", kind="argument", sources=issue("pytorch/pytorch#127736"))
class MomentumUnchecked(BatchNorm):
    """Averages with whatever momentum it is handed."""

    def check_weight(self, momentum: float) -> None:
        """Accept it."""


@fault("momentum-clipped", bn="BN-A1", kind="argument")
class MomentumClipped(MomentumUnchecked):
    """Takes the nearest momentum from 0 to 1."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, min(max(momentum, 0.0), 1.0))


@fault("missing-gamma-refused", ln="CM-T1", bn="CM-T1", pr="CM-T1", kind="argument")
class MissingGammaRefused(Groups):
    """Raises where gamma is None."""

    def before(self, stage: str, arrays: Handed) -> None:
        if arrays[self.record.arguments.index("gamma")] is None:
            raise AttributeError("'NoneType' object has no attribute 'dtype'")


@fault("one-value-refused", ln="CM-T1", in_="IN-E1", kind="argument", sources=issue("facebookresearch/fairseq#1863"))
class OneValueRefused(Groups):
    """Raises where a group holds one value."""

    def rows(self, array: Array, role: str) -> Array:
        rows = super().rows(array, role)
        if rows.shape[1] == 1:
            raise ValueError("cannot normalise over a single value")
        return rows


@fault("odd-count-refused", ln="CM-T1", bn="CM-T1", kind="argument")
class OddCountRefused(Groups):
    """Raises where a group holds an odd number of values greater than one."""

    def mean(self, x: Array) -> Array:
        if x.shape[1] > 1 and x.shape[1] % 2:
            raise RuntimeError("the number of values must be even")
        return super().mean(x)


@fault(
    "vector-refused",
    ln="CM-T1",
    rs="CM-T1",
    po="CM-T1",
    hw="CM-T1",
    apart=("gn", "in"),  # their x has two axes at least
    kind="argument",
    sources=issue("Dao-AILab/flash-attention#781"),
)
class VectorRefused(Staged):
    """Raises for an x of one axis."""

    def before(self, stage: str, arrays: Handed) -> None:
        if arrays[0] is not None and arrays[0].ndim == 1:
            raise IndexError("tuple index out of range")


class ManyAxesRefused(Groups):
    """The base that takes arrays of a few axes only."""

    most: int

    def before(self, stage: str, arrays: Handed) -> None:
        if arrays[0] is not None and arrays[0].ndim > self.most:
            raise ValueError(f"at most {self.most} axes")


@fault("four-axes-refused", ln="CM-T1", kind="argument")
class FourAxesRefused(ManyAxesRefused):
    """Raises for an x of more than three axes."""

    most = 3


@fault("five-axes-refused", bn="CM-T1", kind="argument")
class FiveAxesRefused(ManyAxesRefused):
    """Raises for an x of more than four axes."""

    most = 4


@fault("statistics-returned-too", ln="CM-T1", kind="argument")
class StatisticsReturnedToo(Groups):
    """Returns a second value beside y."""

    def after(self, stage: str, arrays: Handed, results: Handed) -> Handed:
        return (*results, np.zeros(1, self.data)) if stage == "call" else results


@fault("statistics-not-returned", bn="CM-T1", kind="argument")
class StatisticsNotReturned(BatchNorm):
    """Returns only y in inference."""

    def call(self, *arrays, **settings):  # type: ignore[no-untyped-def, override]
        results = super().call(*arrays, **settings)
        return results if settings["training"] else results[0]


@fault("output-flattened", ln="CM-T2", bn="CM-T2", mh="CM-T2", kind="argument")
class OutputFlattened(Staged):
    """Returns y as a matrix where x has more than two axes."""

    def after(self, stage: str, arrays: Handed, results: Handed) -> Handed:
        y = results[0]
        if stage != "call" or y is None or y.ndim <= 2:
            return results
        return (y.reshape(-1, y.shape[-1]) if y.size else y[0], *results[1:])


@fault(
    "dgamma-not-returned",
    everywhere="CM-T3",
    kind="gradient",
    sources=issue("huggingface/candle#3613", "huggingface/candle#3823"),
)
class DgammaNotReturned(Groups):
    """Returns None for dgamma."""

    def after(self, stage: str, arrays: Handed, results: Handed) -> Handed:
        return (results[0], None, *results[2:]) if stage == "vjp" else results


@fault("dbeta-not-reduced", ln="CM-T3", kind="gradient", apart=("rm",))
class DbetaNotReduced(Groups):
    """Returns the cotangent of each group for dbeta, not summed."""

    def after(self, stage: str, arrays: Handed, results: Handed) -> Handed:
        if stage != "vjp" or results[2] is None:
            return results
        return results[0], results[1], np.array(arrays[3])


@fault("zero-groups-refused", ln="CM-S2", rs="CM-S2", pr="CM-S2", po="CM-S2", hw="CM-S2", kind="argument")
class ZeroGroupsRefused(Staged):
    """Raises where x is empty."""

    def before(self, stage: str, arrays: Handed) -> None:
        if arrays[0] is not None and not arrays[0].size:
            raise ZeroDivisionError("division by zero")


@fault("zero-groups-nan-gradient", ln="CM-S2", mh="CM-S2", kind="gradient")
class ZeroGroupsNanGradient(Staged):
    """Returns NaN for the gradients of parameters where x is empty, for it scales by the count and back."""

    def after(self, stage: str, arrays: Handed, results: Handed) -> Handed:
        if stage != "vjp" or arrays[0] is None or arrays[0].size:
            return results
        return (results[0], *(None if one is None else np.full_like(one, np.nan) for one in results[1:]))


@fault("zero-groups-unwritten-gradient", ln="CM-S2", kind="gradient", sources=issue("Dao-AILab/flash-attention#781"))
class ZeroGroupsUnwrittenGradient(Groups):
    """Leaves the parameter gradients unwritten where there are no groups."""

    def parameter_sum(self, terms: Array) -> Array:
        total = super().parameter_sum(terms)
        # A fixed number stands for what the memory happened to hold.
        return total if len(terms) else np.full_like(total, 3.0)


@fault("single-value-nan", bn="BN-E1", in_="IN-E1", kind="statistics")
class SingleValueNan(Groups):
    """Returns NaN for y where a channel, in training, holds one value."""

    def normalise(self, x, s):  # type: ignore[no-untyped-def, override]
        xhat = super().normalise(x, s)
        return xhat * xhat.dtype.type(np.nan) if x.shape[1] == 1 and not s.fixed else xhat


@fault("two-axes-one-sample", in_="IN-E1", kind="statistics")
class TwoAxesOneSample(Groups):
    """Takes x of two axes for the channels and positions of one sample, and so the axis of channels for positions."""

    def normalise(self, x, s):  # type: ignore[no-untyped-def, override]
        if len(self.layout.shape) > 2:
            return super().normalise(x, s)
        rows = x.reshape(self.layout.shape)
        deviation = rows - rows.mean(axis=1, keepdims=True)
        return (deviation / np.sqrt(np.square(deviation).mean(axis=1, keepdims=True) + 1)).reshape(x.shape)


class AxesAccepted(Groups):
    """A function that makes something of axes that x does not have."""

    def settled(self, x: Array, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings with axes that x has."""
        raise NotImplementedError

    def check(self, x: Array, parameters: Arrays, likewise: Arrays, settings: Mapping[str, Any]) -> None:
        super().check(x, parameters, likewise, self.settled(x, settings))

    def begin(self, x: Array, settings: Mapping[str, Any]) -> None:
        super().begin(x, self.settled(x, settings))


@fault("channel-axis-wrapped", bn="CM-A1", gn="CM-A1", in_="CM-A1", kind="argument")
class ChannelAxisWrapped(AxesAccepted):
    """Takes the channel axis modulo the number of axes."""

    def settled(self, x: Array, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**settings, "channel_axis": settings["channel_axis"] % x.ndim}


@fault("unknown-axes-dropped", ln="CM-A1", rm="CM-A1", apart=("gn", "in"), kind="argument")
class UnknownAxesDropped(AxesAccepted):
    """Ignores axes that x does not have."""

    def settled(self, x: Array, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**settings, "axes": tuple(axis for axis in settings["axes"] if -x.ndim <= axis < x.ndim)}
