"""Faults of the sum of two paths that several operators have: one is left out, taken twice, or taken from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ..registry import fault, issue

Array = np.ndarray


@fault(
    "skip-ignored",
    rs="RS-L1",
    pr="PR-F2",
    po="PO-F2",
    sources=issue("MihawkHu/DCASE2020_task1#3", "microsoft/onnxruntime#23236"),
)
class SkipIgnored(Composed):
    """Leaves x out of the sum, so that the branch or the sublayer stands alone."""

    def add(self, skip: Array, through: Array) -> Array:
        return through


@fault(
    "part-added-to-itself",
    rs="RS-F1",
    po="PO-F1",
    sources=issue("kyegomez/BitNet#32", "facebookresearch/multimodal#305", "jackyko1991/vnet-tensorflow#12"),
)
class PartAddedToItself(Composed):
    """Overwrites x with what the branch or the sublayer returned, and adds that to itself."""

    def add(self, skip: Array, through: Array) -> Array:
        return through + through


@fault("mean-of-the-paths", rs="RS-F1", po="PO-F3")
class MeanOfThePaths(Composed):
    """Takes the mean of the two paths, which post_norm shows by an eps that is four times as large to it."""

    def add(self, skip: Array, through: Array) -> Array:
        return (skip + through) / 2


@fault("skip-of-first-block", rs="RS-L3", mh="MH-L5", kind="state")
class SkipOfFirstBlock(Composed):
    """Takes a block whose input is the last block's output to have that block's input for its skip path."""

    first: Array | None = None
    last: bytes = b""

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        x = arrays[0]
        follows = stage == "call" and x.tobytes() == self.last
        if not follows or self.first is None or self.first.shape != x.shape:
            self.first = np.array(x)

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        if stage == "call":
            self.last = results[0].tobytes()
        return results

    def skip(self, x: Array, *shortcut: Any) -> Array:
        return super().skip(self.first, *shortcut)  # type: ignore[misc]


@fault(
    "dx-without-skip",
    rs="RS-G1",
    pr="PR-G1",
    po="PO-G1",
    kind="gradient",
    sources=issue("NVIDIA/recsys-examples#446"),
)
class DxWithoutSkip(Composed):
    """Leaves the skip path out of dx."""

    def add_gradient(self, skip: Array, through: Array, *upstream: Array) -> Array:
        return through


@fault("dx-without-part", rs="RS-G1", pr="PR-G1", po="PO-G1", kind="gradient")
class DxWithoutPart(Composed):
    """Leaves what passes through the branch or the sublayer out of dx."""

    def add_gradient(self, skip: Array, through: Array, *upstream: Array) -> Array:
        return skip


@fault("tangent-without-skip", rs="RS-G5", pr="PR-G7", kind="tangent")
class TangentWithoutSkip(Composed):
    """Leaves the skip path out of the tangent."""

    def add_tangent(self, skip: Array, through: Array) -> Array:
        return through
