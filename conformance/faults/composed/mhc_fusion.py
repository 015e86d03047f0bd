"""Faults of mhc's value: which outputs are added, and how fuse is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....adapters.numpy.operators.mhc import Mhc
from ..registry import fault, issue

Array = np.ndarray


@fault("x-missing", mh="MH-F1")
class XMissing(Mhc):
    """Returns only the weighted outputs."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(np.zeros_like(skip), outputs, w)


@fault("x-weighted", mh="MH-F1")
class XWeighted(Mhc):
    """Takes x for one more branch, with the mean of the others' weights."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        share = w.dtype.type(1 / (len(outputs) + 1))
        return super().combine(skip * share, outputs, w * (1 - share))


@fault("outputs-averaged", mh="MH-F1")
class OutputsAveraged(Mhc):
    """Divides the weighted sum by the number of branches."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs, w / w.dtype.type(len(outputs)))


@fault("weights-shifted", mh="MH-F1")
class WeightsShifted(Mhc):
    """Weighs each branch by the weight of the branch before it."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs, np.roll(w, 1))


@fault("last-branch-dropped", mh="MH-F4")
class LastBranchDropped(Mhc):
    """Adds the outputs of all branches but the last."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs[:-1], w[:-1])


@fault("eight-branches-at-most", mh="MH-F4", sources=issue("MetaX-MACA/vLLM-metax#270"))
class EightBranchesAtMost(Mhc):
    """Adds the outputs of the first eight branches."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        return super().combine(skip, outputs[:8], w[:8])


@fault("single-branch-refused", mh="MH-F4", kind="argument", sources=issue("databricks/megablocks#87"))
class SingleBranchRefused(Mhc):
    """Raises where there is a single branch."""

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        if len(arrays[1]) == 1:
            raise IndexError("there is no axis of branches")


@fault("repeated-output-dropped", mh="MH-L3")
class RepeatedOutputDropped(Mhc):
    """Adds no output that equals an earlier one."""

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        seen: set[bytes] = set()
        kept = []
        for place, output in enumerate(outputs):
            if output.tobytes() not in seen:
                kept.append(place)
            seen.add(output.tobytes())
        return super().combine(skip, [outputs[k] for k in kept], w[kept])


class Windowed(Mhc):
    """The base that mixes positions of a sequence, the second last axis, after the branches."""

    def mixed(self, y: Array) -> Array:
        """y with its positions mixed."""
        raise NotImplementedError

    def combine(self, skip: Array, outputs: list[Array], w: Array) -> Array:
        weighted = super().combine(np.zeros_like(skip), outputs, w)
        return skip + (self.mixed(weighted) if weighted.ndim > 1 else weighted)


@fault("neighbours-mixed", mh="MH-L7")
class NeighboursMixed(Windowed):
    """Averages the fused value with that of the position before, so that the receptive field grows by one."""

    def mixed(self, y: Array) -> Array:
        return (y + np.roll(y, 1, axis=-2)) / 2


@fault("whole-sequence-pooled", mh="MH-L7")
class WholeSequencePooled(Windowed):
    """Adds a little of the sequence's mean to every position, so that every one depends on all."""

    def mixed(self, y: Array) -> Array:
        return y + np.mean(y, axis=-2, keepdims=True) / 8 if y.size else y


@fault("fuse-ignored", mh="MH-F5")
class FuseIgnored(Mhc):
    """Adds the mean of the outputs where fuse is given."""

    def fused(self, fuse: Any, outputs: list[Array]) -> Array:
        super().fused(fuse, outputs)
        return np.mean(np.stack(outputs), axis=0, dtype=outputs[0].dtype)


@fault("fuse-reversed", mh="MH-F5")
class FuseReversed(Mhc):
    """Hands fuse the outputs last to first."""

    def for_fuse(self, outputs: list[Array]) -> list[Array]:
        return super().for_fuse(outputs)[::-1]


@fault("fuse-averaged", mh="MH-F5")
class FuseAveraged(Mhc):
    """Divides the value of fuse by the number of branches."""

    def fused(self, fuse: Any, outputs: list[Array]) -> Array:
        return super().fused(fuse, outputs) / outputs[0].dtype.type(len(outputs))


@fault("fuse-without-x", mh="MH-F5")
class FuseWithoutX(Mhc):
    """Returns only the value of fuse."""

    def add(self, skip: Array, fused: Array) -> Array:
        return fused


@fault("fuse-handed-sums", mh="MH-F5")
class FuseHandedSums(Mhc):
    """Hands fuse the outputs with x added to each."""

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        self.handed = self.read(x, "x")
        return super().outputs(x, branches)

    def for_fuse(self, outputs: list[Array]) -> list[Array]:
        return super().for_fuse([output + self.handed for output in outputs])


@fault("fuse-one-at-a-time", mh="MH-F6")
class FuseOneAtATime(Mhc):
    """Hands fuse each output beside zeros and adds the values up, so that no branch reads another."""

    def fused(self, fuse: Any, outputs: list[Array]) -> Array:
        total = np.zeros_like(outputs[0])
        for place in range(len(outputs)):
            alone = [output if k == place else np.zeros_like(output) for k, output in enumerate(outputs)]
            total = total + super().fused(fuse, alone)
        return total
