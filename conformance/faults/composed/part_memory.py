"""Faults of memory that parts own, share or return."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.blocks import Call
from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway
from ....adapters.numpy.operators.pre_norm import PreNorm
from ....spec.operators import OPERATORS
from ..layouts import read_on
from ..mutation import overwrite
from ..registry import fault, issue

Array = np.ndarray


class Returned(Composed):
    """The base that keeps hold of what the part of one role returned in the call at hand, the last of several."""

    #: The role whose results are kept; the operator's first where it is empty.
    kept_role = ""
    kept: Array | None = None

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.kept = None

    def accepted(self, result: Any, role: str) -> Array:
        if role.partition(".")[0] == (self.kept_role or OPERATORS[self.operator].roles[0]):
            self.kept = result
        return super().accepted(result, role)


@fault("part-result-mutated", everywhere="CM-C3", kind="state", sources=issue("iMED-Lab/ER-Net#3"))
class PartResultMutated(Returned):
    """Works in place, in what a part returned, and hands out a copy."""

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        if stage == "call" and self.kept is not None and not np.may_share_memory(self.kept, arrays[0]):
            overwrite(self.kept, results[0])
        return results


@fault("gate-result-mutated", hw="CM-C3", kind="state")
class GateResultMutated(Returned, Highway):
    """Squashes in place what the gate returned."""

    kept_role = "gate"

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        if stage == "call" and self.kept is not None and not np.may_share_memory(self.kept, arrays[0]):
            overwrite(self.kept, self.sigmoid(self.kept.astype(self.work)).astype(self.kept.dtype))
        return results


@fault("normed-mutated", pr="CM-C3", kind="state")
class NormedMutated(PreNorm):
    """Writes the result over what the sublayer was handed."""

    handed_over: Array | None = None

    def handed(self, call: Call) -> Array:
        self.handed_over = super().handed(call)
        return self.handed_over

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        if stage == "call":
            overwrite(self.handed_over, results[0])
        return results


@fault("normed-buffer-shared", pr="CM-C3", kind="state")
class NormedBufferShared(PreNorm):
    """Hands the sublayer LN(x) in a buffer that the next call of the same shape overwrites."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: dict[Any, Array] = {}

    def handed(self, call: Call) -> Array:
        normed = super().handed(call)
        buffer = self.buffers.setdefault((normed.shape, normed.dtype), np.empty_like(normed))
        buffer[...] = normed
        return buffer


@fault("part-result-returned", everywhere="CM-C4", kind="state")
class PartResultReturned(Returned):
    """Works in place, in what a part returned, and returns that."""

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = self.kept
        if stage != "call" or kept is None or not kept.flags.writeable or np.may_share_memory(kept, arrays[0]):
            return results
        kept[...] = results[0]
        return (kept, *results[1:])


@fault("part-result-read-on", everywhere="CM-V1", kind="layout")
class PartResultReadOn(Composed):
    """Reads what a part returned as if it were contiguous."""

    def accepted(self, result: Any, role: str) -> Array:
        return read_on(super().accepted(result, role))


def forget(part: Any) -> None:
    """Drop the gradients of a part's leaves, where the part notes them."""
    material = getattr(part, "material", None)
    if material is None:
        return
    for leaf in material.leaves:
        for key in (leaf.name, ("sum", leaf.name)):
            (leaf.notes or {}).pop(key, None)
    for inner in material.inner:
        forget(inner)


@fault(
    "leaf-gradient-overwritten",
    rs="CM-C8",
    hw="CM-C8",
    mh="CM-C8",
    kind="gradient",
    sources=issue("NVIDIA/TransformerEngine#3437"),
)
class LeafGradientOverwritten(Composed):
    """Sets the gradient of a part's leaf where it should add to it, so that parts that share it lose all but one."""

    def pulled(self, part: Any, x: Array, g: Array, role: str) -> Array:
        forget(part)
        return super().pulled(part, x, g, role)


@fault("identity-taken-for-nothing", rs="CM-C9", po="CM-C9", hw="CM-C9", mh="CM-C9")
class IdentityTakenForNothing(Composed):
    """Adds nothing for a part that returns x itself or a view of it."""

    x: Array | None = None

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.x = arrays[0] if stage == "call" else None

    def taken(self, result: Any, role: str) -> Array:
        own = super().taken(result, role)
        return np.zeros_like(own) if self.x is not None and np.may_share_memory(result, self.x) else own


@fault(
    "view-written-through",
    rs="CM-C9",
    mh="CM-C9",
    kind="state",
    sources=issue("rosinality/vq-vae-2-pytorch#60"),
)
class ViewWrittenThrough(Composed):
    """Works in place in what a part returned, which is x where the part returns x or a view of it."""

    returned: list[Array]

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.returned = []

    def accepted(self, result: Any, role: str) -> Array:
        self.returned.append(result)
        return super().accepted(result, role)

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        for result in self.returned if stage == "call" else ():
            if np.may_share_memory(result, arrays[0]):
                overwrite(result, results[0])
        return results


@fault("identity-sublayer-skipped", pr="CM-C9")
class IdentitySublayerSkipped(PreNorm):
    """Returns x where the sublayer returns what it was handed."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        result = part(x)
        return self.taken(np.zeros_like(x) if np.may_share_memory(result, x) else result, role)
