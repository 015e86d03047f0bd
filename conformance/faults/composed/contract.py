"""Faults of the contract: what is accepted, what is refused, what comes back, layouts, sizes, dtypes and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....adapters.numpy.operators.blocks import Block
from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.mhc import Mhc
from ..arguments import DgammaNotReturned, EpsUnchecked
from ..layouts import ParameterStridesIgnored, read_on
from ..registry import SIXTEEN_BIT, fault, issue
from ..sizes import First1024Values

Array = np.ndarray
Results = tuple[Any, ...]


@fault("vector-refused", rs="CM-T1", po="CM-T1", hw="CM-T1", kind="argument")
class VectorRefused(Composed):
    """Raises for an x of one axis."""

    def before(self, stage: str, arrays: Results) -> None:
        if arrays[0].ndim == 1:
            raise IndexError("tuple index out of range")


@fault("missing-gamma-refused", pr="CM-T1", kind="argument")
class MissingGammaRefused(Block):
    """Raises where gamma is None."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if array is None and role == "gamma":
            raise AttributeError("'NoneType' object has no attribute 'dtype'")
        return super().parameter(array, role)


@fault("weights-returned-too", mh="CM-T1", kind="argument")
class WeightsReturnedToo(Mhc):
    """Returns the weights beside y."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage != "call" or arrays[2] is None:
            return results
        return (*results, self.weights(arrays[2]))


@fault("output-float32", rs="CM-T2", pr="CM-T2", po="CM-T2", hw="CM-T2", mh="CM-T2", kind="dtype", dtypes=SIXTEEN_BIT)
class OutputFloat32(Composed):
    """Returns y in the float32 it was computed in."""

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array, shape, self.work if role == "y" else dtype, role)


@fault("output-flattened", mh="CM-T2", kind="argument")
class OutputFlattened(Composed):
    """Returns y as a matrix where x has more than two axes."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        y = results[0]
        return (y.reshape(-1, y.shape[-1]), *results[1:]) if stage == "call" and y.ndim > 2 and y.size else results


fault("dgamma-not-returned", pr="CM-T3", po="CM-T3", kind="gradient")(DgammaNotReturned)


@fault("gradient-float32", rs="CM-T3", hw="CM-T3", kind="dtype", dtypes=SIXTEEN_BIT)
class GradientFloat32(Composed):
    """Returns dx in the float32 it was computed in."""

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array, shape, self.work if role == "dx" else dtype, role)


@fault("dlogits-not-returned", mh="CM-T3", kind="gradient")
class DlogitsNotReturned(Mhc):
    """Returns None for the gradient of the logits."""

    def logits_result(self, gradient: Array, given: Array | None, role: str) -> Array | None:
        return None if role == "dlogits" else super().logits_result(gradient, given, role)


@fault(
    "strides-ignored",
    rs="CM-V1",
    pr="CM-V1",
    po="CM-V1",
    hw="CM-V1",
    mh="CM-V1",
    kind="layout",
    sources=issue("NVIDIA/TransformerEngine#1017"),
)
class StridesIgnored(Composed):
    """Reads x for the skip path as if it were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" else array, role)


@fault("cotangent-strides-ignored", rs="CM-V2", pr="CM-V2", po="CM-V2", hw="CM-V2", mh="CM-V2", kind="layout")
class CotangentStridesIgnored(Composed):
    """Reads the cotangent as if it were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "g" else array, role)


fault("parameter-strides-ignored", pr="CM-V3", po="CM-V3", kind="layout")(ParameterStridesIgnored)


@fault("logits-strides-ignored", mh="CM-V3", kind="layout")
class LogitsStridesIgnored(Mhc):
    """Reads the logits as if they were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "logits" else array, role)


class Written(Composed):
    """The base that changes y before it is handed out."""

    def changed(self, y: Array) -> Array:
        """y with something done to it."""
        raise NotImplementedError

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(self.changed(array) if role == "y" else array, shape, dtype, role)


@fault("tail-unwritten", rs="CM-S1", hw="CM-S1", mh="CM-S1", kind="size")
class TailUnwritten(Written):
    """Leaves the values after the last whole block of 64 unwritten, in rows longer than that."""

    def changed(self, y: Array) -> Array:
        count = self.shape[-1]
        if count <= 64:
            return y
        y = y.copy()
        y[..., count // 64 * 64 :] = 0
        return y


@fault("rows-beyond-grid-unwritten", rs="CM-S1", po="CM-S1", kind="size")
class RowsBeyondGridUnwritten(Written):
    """Leaves the rows after the 65535th unwritten."""

    def changed(self, y: Array) -> Array:
        rows = y.reshape(-1, y.shape[-1]).copy()
        rows[65535:] = 0
        return rows.reshape(y.shape)


fault("first-1024-values", pr="CM-S1", kind="size")(First1024Values)


@fault("zero-groups-refused", rs="CM-S2", pr="CM-S2", po="CM-S2", hw="CM-S2", kind="argument")
class ZeroGroupsRefused(Composed):
    """Raises where x is empty."""

    def before(self, stage: str, arrays: Results) -> None:
        if not arrays[0].size:
            raise ZeroDivisionError("division by zero")


@fault("zero-groups-nan-gradient", mh="CM-S2", kind="gradient")
class ZeroGroupsNanGradient(Mhc):
    """Returns NaN for the gradient of the logits where x is empty, for it scales by the count and back."""

    def inner(self, g: Array, output: Array) -> Array:
        found = super().inner(g, output)
        return found if g.size else found * g.dtype.type(np.nan)


fault("eps-unchecked", pr="CM-A2", po="CM-A2", kind="argument")(EpsUnchecked)


@fault("surplus-logits-ignored", mh="CM-A1", kind="argument")
class SurplusLogitsIgnored(Mhc):
    """Accepts more logits than branches, and takes the first."""

    def check_logits(self, branches: Sequence[Any], logits: Array | None) -> None:
        if logits is not None and len(logits) < len(branches):
            super().check_logits(branches, logits)

    def weights(self, logits: Array) -> Array:
        return super().weights(logits[: self.count])

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        self.count = len(branches)
        return super().outputs(x, branches)
