"""Faults of purity: what is overwritten, shared between calls, or remembered from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway, Paths
from ....adapters.numpy.operators.mhc import Mhc
from ....adapters.numpy.operators.residual import Residual
from ..mutation import overwrite
from ..neighbours import next_up
from ..registry import WIDE, fault, issue
from ..state import SavedStatisticsShared

Array = np.ndarray
Results = tuple[Any, ...]


@fault(
    "x-overwritten",
    rs="CM-P1",
    pr="CM-P1",
    po="CM-P1",
    mh="CM-P1",
    kind="state",
    sources=issue("GeeeekExplorer/nano-vllm#170"),
)
class XOverwritten(Composed):
    """Adds in place: x holds y afterwards."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage == "call":
            overwrite(arrays[0], results[0])
        return results


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


@fault("cotangent-overwritten", rs="CM-P1", hw="CM-P1", kind="state")
class CotangentOverwritten(Composed):
    """Adds to the cotangent in place: it holds dx afterwards."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage == "vjp":
            overwrite(arrays[-1], results[0])
        return results


@fault("logits-overwritten", mh="CM-P1", kind="state")
class LogitsOverwritten(Mhc):
    """Takes softmax in place: the logits hold the weights afterwards."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage == "call" and arrays[2] is not None:
            overwrite(arrays[2], self.weights(arrays[2]).astype(arrays[2].dtype))
        return results


class Buffers(Composed):
    """The base that hands results out in buffers that the next call of the same shape writes again."""

    #: The stage whose first result lies in a buffer.
    buffered: str

    def __init__(self) -> None:
        self.buffers: dict[tuple[object, ...], Array] = {}

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage != self.buffered:
            return results
        buffer = self.buffers.setdefault((results[0].shape, results[0].dtype), np.empty_like(results[0]))
        buffer[...] = results[0]
        return (buffer, *results[1:])


@fault("output-buffer-shared", rs="CM-P4", pr="CM-P4", hw="CM-P4", kind="state")
class OutputBufferShared(Buffers):
    """Returns y in a buffer that the next call of the same shape overwrites."""

    buffered = "call"


@fault("gradient-buffer-shared", po="CM-P4", mh="CM-P4", kind="state")
class GradientBufferShared(Buffers):
    """Returns dx in a buffer that the next backward pass of the same shape overwrites."""

    buffered = "vjp"


fault("saved-statistics-shared", pr="CM-P5", po="CM-P5", kind="state")(SavedStatisticsShared)


@fault("gates-of-last-call", hw="CM-P5", kind="state")
class GatesOfLastCall(Highway):
    """Keeps one pair of gates, so that a gradient uses those of the latest forward pass."""

    kept: Paths | None = None
    stage = ""

    def before(self, stage: str, arrays: Results) -> None:
        self.stage = stage

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        own, kept = super().paths(x, transform, gate, carry), self.kept
        if self.stage == "call":
            self.kept = own
        elif kept is not None and kept.x.shape == own.x.shape and kept.x.dtype == own.x.dtype:
            return attrs.evolve(own, t=kept.t, c=kept.c)
        return own


@fault("outputs-of-last-call", mh="CM-P5", kind="state")
class OutputsOfLastCall(Mhc):
    """Keeps one set of outputs, so that a gradient uses those of the latest forward pass."""

    kept: list[Array] | None = None
    stage = ""

    def before(self, stage: str, arrays: Results) -> None:
        self.stage = stage

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
    stage = ""

    def before(self, stage: str, arrays: Results) -> None:
        self.stage = stage

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        own, kept = super().total(x, branch, shortcut), self.kept
        if self.stage == "call":
            self.kept = own
        elif kept is not None and kept.shape == own.shape and kept.dtype == own.dtype:
            return kept
        return own


class Counted(Composed):
    """The base that counts its forward passes."""

    calls = 0

    def before(self, stage: str, arrays: Results) -> None:
        self.calls += stage == "call"


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


@fault("drifts-after-ten-calls", hw="CM-P2", pr="CM-P2", po="CM-P2", kind="state", sources=issue("karpathy/llm.c#852"))
class DriftsAfterTenCalls(Counted):
    """Adds to the first value of y what a counter holds, from the eleventh call on."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        y = results[0]
        if stage == "call" and self.calls > 10 and y.size:
            y.flat[0] = abs(float(y.flat[0])) + 1 + self.calls % 7
        return results


@fault("gradient-drifts", rs="CM-P2", pr="CM-P2", po="CM-P2", hw="CM-P2", mh="CM-P2", kind="state")
class GradientDrifts(Composed):
    """Adds to the first value of the last gradient, dlogits in mhc, what a counter holds, from the second one on."""

    pulls = 0

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        self.pulls += stage == "vjp"
        last = results[-1]
        if stage == "vjp" and self.pulls > 1 and last is not None and last.size:
            last.flat[0] = abs(float(last.flat[0])) + 1 + self.pulls % 7
        return results


@fault("last-bit-on-alternate-calls", rs="CM-P3", pr="CM-P3", po="CM-P3", hw="CM-P3", kind="state", dtypes=WIDE)
class LastBitOnAlternateCalls(Counted):
    """Differs in the last bit of y on every second call."""

    def after(self, stage: str, arrays: Results, results: Results) -> Results:
        if stage == "call" and self.calls % 2 == 0:
            return (next_up(results[0]), *results[1:])
        return results


@fault("order-alternates", mh="CM-P3", kind="state", dtypes=WIDE)
class OrderAlternates(Counted, Mhc):
    """Adds the outputs last to first on every second call, as threads that race would."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs[::-1], w[::-1]) if self.calls % 2 else super().combine(skip, outputs, w)
