"""Faults of purity: what is overwritten, shared between calls, or remembered from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway, Paths
from ....adapters.numpy.operators.mhc import Mhc
from ....adapters.numpy.operators.residual import Residual
from ..mutation import overwrite
from ..registry import WIDE, fault, issue
from ..state import Counted

Array = np.ndarray
Results = tuple[Any, ...]


@fault(
    "x-rectified-in-place",
    rs="CM-P1",
    kind="state",
    sources=issue("rosinality/vq-vae-2-pytorch#60", "iduta/iresnet#2", "pytorch/pytorch#5687"),
)
class XRectifiedInPlace(Residual):
    """Begins the branch with a rectifier that works in place, so that x is rectified on the identity path too."""

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        if x.flags.writeable:
            np.maximum(x, x.dtype.type(0), out=x)
        return super().total(x, branch, shortcut)


@fault("logits-overwritten", mh="CM-P1", kind="state")
class LogitsOverwritten(Mhc):
    """Takes softmax in place: the logits hold the weights afterwards."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage == "call" and arrays[2] is not None:
            overwrite(arrays[2], self.weights(arrays[2]).astype(arrays[2].dtype))
        return results


@fault("gates-of-last-call", hw="CM-P5", kind="state")
class GatesOfLastCall(Highway):
    """Keeps one pair of gates, so that a gradient uses those of the latest forward pass."""

    kept: Paths | None = None

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        own, kept = super().paths(x, transform, gate, carry), self.kept
        if self.stage == "call":
            self.kept = own
        elif kept is not None and kept.x.shape == own.x.shape and kept.x.dtype == own.x.dtype:
            return replace(own, t=kept.t, c=kept.c)
        return own


@fault("outputs-of-last-call", mh="CM-P5", kind="state")
class OutputsOfLastCall(Mhc):
    """Keeps one set of outputs, so that a gradient uses those of the latest forward pass."""

    kept: list[Array] | None = None

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        own, kept = super().outputs(x, branches), self.kept
        if self.stage == "call":
            self.kept = own
        elif kept is not None and [(k.shape, k.dtype) for k in kept] == [(o.shape, o.dtype) for o in own]:
            return kept
        return own


@fault("sum-of-last-call", rs="CM-P5", kind="state")
class SumOfLastCall(Residual):
    """Keeps one sum, so that a gradient takes the activation's derivative at that of the latest forward pass."""

    kept: Array | None = None

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        own, kept = super().total(x, branch, shortcut), self.kept
        if self.stage == "call":
            self.kept = own
        elif kept is not None and kept.shape == own.shape and kept.dtype == own.dtype:
            return kept
        return own


@fault("weights-kept-by-identity", mh="CM-P2", kind="state")
class WeightsKeptByIdentity(Mhc):
    """Keeps the weights on the array object of the logits until another x comes, and misses what is written into it."""

    #: The arrays of the present call, and the logits, values of x and weights that are kept.
    handed: Results = ()
    kept: tuple[Array, bytes, Array] | None = None

    def before(self, stage: str, arrays: Results) -> None:
        self.handed = arrays

    def weights(self, logits: Array) -> Array:
        key = self.handed[0].tobytes()
        if self.kept is None or self.kept[0] is not logits or self.kept[1] != key:
            self.kept = logits, key, super().weights(logits)
        return self.kept[2]


@fault("gradient-accumulates", rs="CM-P2", mh="CM-P2", kind="state")
class GradientAccumulates(Composed):
    """Adds dx to that of the last backward pass of the same shape."""

    kept: Array | None = None

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        dx = results[0]
        if stage != "vjp":
            return results
        if self.kept is not None and self.kept.shape == dx.shape and self.kept.dtype == dx.dtype:
            dx = dx + self.kept
        self.kept = np.array(dx)
        return (dx, *results[1:])


@fault("order-alternates", mh="CM-P3", kind="state", dtypes=WIDE)
class OrderAlternates(Counted, Mhc):
    """Adds the outputs last to first on every second call, as threads that race would."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs[::-1], w[::-1]) if self.calls % 2 else super().combine(skip, outputs, w)
