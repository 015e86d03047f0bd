"""Faults of the contract: what is accepted, what is refused, what comes back, layouts, sizes, dtypes and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.mhc import Mhc
from ..layouts import read_on
from ..registry import fault

Array = np.ndarray
Results = tuple[Any, ...]


@fault("weights-returned-too", mh="CM-T1", kind="argument")
class WeightsReturnedToo(Mhc):
    """Returns a second value beside y where logits are given."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage != "call" or arrays[2] is None:
            return results
        return (*results, self.weights(arrays[2]))


@fault("dlogits-not-returned", mh="CM-T3", kind="gradient")
class DlogitsNotReturned(Mhc):
    """Returns None for the gradient of the logits."""

    def logits_result(self, gradient: Array, given: Array | None, role: str) -> Array | None:
        return None if role == "dlogits" else super().logits_result(gradient, given, role)


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
