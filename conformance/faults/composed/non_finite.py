"""Faults of NaN and infinity in composed operators: leaking, or swallowed on the way from x, a part or a logit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway
from ....adapters.numpy.operators.mhc import Mhc
from ..registry import fault
from .contract import Written

Array = np.ndarray


@fault("nan-leaks", everywhere="CM-N1", kind="non-finite")
class NanLeaks(Written):
    """Adds zero times the sum of all of y to y."""

    def changed(self, y: Array) -> Array:
        return y + 0 * np.add.reduce(y, axis=None)


@fault("nan-zeroed", everywhere="CM-N3", kind="non-finite")
class NanZeroed(Written):
    """Replaces NaN and Inf in y by zero."""

    def changed(self, y: Array) -> Array:
        return np.where(np.isfinite(y), y, y.dtype.type(0))


@fault("part-nan-zeroed", everywhere="CM-N5", kind="non-finite")
class PartNanZeroed(Composed):
    """Takes a NaN in what a part returned for 0."""

    def taken(self, result: Any, role: str) -> Array:
        values = super().taken(result, role)
        return np.where(np.isnan(values), values.dtype.type(0), values)


@fault("nan-logit-shut", hw="CM-N5", kind="non-finite")
class NanLogitShut(Highway):
    """Takes a NaN logit for minus infinity, as a maximum that drops NaN does."""

    def sigmoid(self, z: Array) -> Array:
        return super().sigmoid(np.fmax(z, -np.inf))


@fault("nan-logit-closed", mh="CM-N5", kind="non-finite")
class NanLogitClosed(Mhc):
    """Takes a NaN logit for minus infinity, as a running maximum that begins there does."""

    def softmax(self, logits: Array) -> Array:
        return super().softmax(np.fmax(logits, -np.inf))
