"""Faults of calling parts: how often, in which order, with what, and what becomes of what they raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....adapters.numpy.operators.blocks import Call
from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway, Paths
from ....adapters.numpy.operators.mhc import Mhc
from ....adapters.numpy.operators.post_norm import PostNorm
from ....adapters.numpy.operators.pre_norm import PreNorm
from ....adapters.numpy.operators.residual import Residual
from ..registry import SIXTEEN_BIT, WIDE, fault

Array = np.ndarray


@fault("parts-called-twice", everywhere="CM-C1", kind="state")
class PartsCalledTwice(Composed):
    """Calls every part twice, as a layer does that looks at the shape of a result first."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        super().value(part, x, role)
        return super().value(part, x, role)


class Strided(Composed):
    """The base with a path of its own for an x that is not contiguous."""

    strided = False

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.strided = not arrays[0].flags.c_contiguous


@fault("parts-called-twice-where-strided", everywhere="CM-C1", kind="state")
class PartsCalledTwiceWhereStrided(Strided):
    """Calls every part twice where x is not contiguous."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        if self.strided:
            super().value(part, x, role)
        return super().value(part, x, role)


@fault("tiny-part-skipped", rs="RS-F1", pr="PR-F1", po="PO-F1", hw="HW-F1", mh="MH-F1", dtypes=("bfloat16", *WIDE))
class TinyPartSkipped(Composed):
    """Takes the values of a part for 0 where all are below 2^-20."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        own = super().value(part, x, role)
        return np.zeros_like(own) if np.max(np.abs(own), initial=0) < 2.0**-20 else own


@fault("branches-called-backwards", mh="CM-C1", kind="state")
class BranchesCalledBackwards(Mhc):
    """Calls the branches last to first."""

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        pairs = reversed(list(enumerate(branches)))
        return [self.value(branch, x, f"branches.{k}") for k, branch in pairs][::-1]


@fault("closed-branch-not-called", mh="CM-C1", kind="state")
class ClosedBranchNotCalled(Mhc):
    """Does not call a branch whose weight is zero."""

    w: Array | None = None

    def call(self, x: Array, branches: Sequence[Any], logits: Array | None, *, fuse: Any = None) -> Array:
        self.begin(x, branches, logits, fuse)
        self.w = None if logits is None else self.weights(logits)
        y = super().call(x, branches, logits, fuse=fuse)
        self.w = None
        return y

    def value(self, part: Any, x: Array, role: str) -> Array:
        place = role.removeprefix("branches.")
        if self.w is not None and place != role and self.w[int(place)] == 0:
            return np.zeros(self.shape, self.work)
        return super().value(part, x, role)


@fault("carry-gate-called-again", hw="CM-C1", kind="state")
class CarryGateCalledAgain(Highway):
    """Calls the gate a second time for c = 1 - t."""

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        p = super().paths(x, transform, gate, carry)
        if carry is not None:
            return p
        return Paths(p.x, p.transformed, p.logits, None, p.t, 1 - self.sigmoid(self.value(gate, x, "gate")))


@fault("same-part-called-once", rs="CM-C1", hw="CM-C1", mh="CM-C1", kind="state")
class SamePartCalledOnce(Composed):
    """Keeps the value of each part by the part itself, so that one that stands in two roles is called once."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Any, Array] = {}

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.values = {}

    def value(self, part: Any, x: Array, role: str) -> Array:
        if part not in self.values:
            self.values[part] = super().value(part, x, role)
        return self.values[part]


@fault("carry-left-out-where-gate-is-the-transform", hw="CM-C1", kind="argument")
class CarryLeftOutWhereGateIsTheTransform(Highway):
    """Couples the gates, whatever carry is given, if one callable is the transform and the gate."""

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        return super().paths(x, transform, gate, None if transform is gate else carry)


@fault("activation-left-out-where-it-is-the-branch", rs="CM-C1", kind="argument")
class ActivationLeftOutWhereItIsTheBranch(Residual):
    """Takes one callable that is the branch and the activation to be applied already."""

    def call(self, x: Array, branch: Any, *, shortcut: Any = None, activation: Any = None) -> Array:
        return super().call(x, branch, shortcut=shortcut, activation=None if activation is branch else activation)


@fault("parts-handed-float32", everywhere="CM-C10", kind="dtype", dtypes=SIXTEEN_BIT)
class PartsHandedFloat32(Composed):
    """Hands parts a float32 copy of a 16-bit x."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        return super().value(part, x.astype(np.float32), role)


@fault("parts-handed-matrix", rs="CM-C10", mh="CM-C10", kind="argument")
class PartsHandedMatrix(Composed):
    """Flattens all axes but the last of what it hands to parts, and restores them afterwards."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        if x.ndim <= 2:
            return super().value(part, x, role)
        flat = part(x.reshape(-1, x.shape[-1]) if x.size else x)
        return self.read(flat, role).reshape(self.shape)


@fault("five-axes-made-four", everywhere="CM-C10", kind="argument")
class FiveAxesMadeFour(Composed):
    """Hands parts an x of five axes or more as one of four, and restores them afterwards."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        if x.ndim <= 4:
            return super().value(part, x, role)
        return self.read(part(x.reshape(-1, *x.shape[-3:])), role).reshape(self.shape)


@fault("one-axis-made-two", everywhere="CM-C10", kind="argument")
class OneAxisMadeTwo(Composed):
    """Hands parts an x of one axis as a matrix of one row, and leaves that axis out again afterwards."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        if x.ndim != 1:
            return super().value(part, x, role)
        return self.read(part(x[None]), role).reshape(self.shape)


@fault("x-rectified-for-branch", rs="CM-C2")
class XRectifiedForBranch(Residual):
    """Hands the branch max(x, 0), as a block does that begins with its activation."""

    def branch_value(self, x: Array, branch: Any) -> Array:
        return super().branch_value(np.maximum(x, x.dtype.type(0)), branch)


@fault("branch-handed-shortcut", rs="CM-C2")
class BranchHandedShortcut(Residual):
    """Hands the branch what the shortcut returned."""

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        skip = self.skip(x, shortcut)
        return self.add(skip, self.branch_value(x if shortcut is None else self.part_input(skip, "shortcut"), branch))


@fault("sublayer-handed-x", pr="CM-C2")
class SublayerHandedX(PreNorm):
    """Hands the sublayer x where it should hand it LN(x)."""

    def handed(self, call: Call) -> Array:
        return self.part_input(self.read(call.x, "x"), "sublayer")


@fault("sublayer-handed-normalised", po="CM-C2")
class SublayerHandedNormalised(PostNorm):
    """Hands the sublayer x with its mean taken off."""

    def total(self, x: Array, sublayer: Any) -> Array:
        wide = self.read(x, "x")
        centred = wide - np.mean(wide, axis=-1, keepdims=True)
        return self.add(wide, self.value(sublayer, self.part_input(centred, "sublayer"), "sublayer"))


@fault("gate-handed-transformed", hw="CM-C2")
class GateHandedTransformed(Highway):
    """Hands the gate what the transform returned."""

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        p = super().paths(x, transform, lambda _: np.zeros_like(x), carry)
        logits = self.value(gate, self.part_input(p.transformed, "transform"), "gate")
        t = self.transform_gate(logits)
        c = self.coupled_carry(logits, t) if p.carry_logits is None else p.c
        return Paths(p.x, p.transformed, logits, p.carry_logits, t, c)


@fault("branches-cascaded", mh="CM-C2")
class BranchesCascaded(Mhc):
    """Hands every branch what the branch before it returned."""

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        found: list[Array] = []
        for k, branch in enumerate(branches):
            found.append(self.value(branch, x if k == 0 else self.part_input(found[-1], "branches"), f"branches.{k}"))
        return found


@fault("fuse-handed-working-dtype", mh="CM-C10", kind="dtype", dtypes=SIXTEEN_BIT)
class FuseHandedWorkingDtype(Mhc):
    """Hands fuse the outputs in float32 where x is 16-bit."""

    def for_fuse(self, outputs: list[Array]) -> list[Array]:
        return [output.copy() for output in outputs]


@fault("result-fitted", rs="CM-C5", pr="CM-C5", hw="CM-C5", mh="CM-C5", kind="argument")
class ResultFitted(Composed):
    """Starts a part's result again at its end where it is too short."""

    def accepted(self, result: Any, role: str) -> Array:
        return result if result.shape == self.shape else np.resize(result, self.shape)


@fault("result-padded", po="CM-C5", mh="CM-C5", kind="argument")
class ResultPadded(Composed):
    """Fills a part's result up with zeros where it is too short."""

    def accepted(self, result: Any, role: str) -> Array:
        if result.ndim != len(self.shape) or any(n > m for n, m in zip(result.shape, self.shape, strict=True)):
            return super().accepted(result, role)
        full = np.zeros(self.shape, result.dtype)
        full[tuple(slice(n) for n in result.shape)] = result
        return full


@fault("result-broadcast", everywhere="CM-C6", kind="argument")
class ResultBroadcast(Composed):
    """Broadcasts a part's result to the shape of x, silently."""

    def accepted(self, result: Any, role: str) -> Array:
        try:
            return np.broadcast_to(result, self.shape)
        except ValueError:
            return super().accepted(result, role)


@fault("failing-part-skipped", everywhere="CM-C7", kind="argument")
class FailingPartSkipped(Composed):
    """Takes the value of a part that raises for zero."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        try:
            return super().value(part, x, role)
        except ValueError:
            raise
        except Exception:
            return np.zeros(self.shape, self.work)


@fault("values-kept-after-exception", rs="CM-C7", hw="CM-C7", mh="CM-C7", kind="state")
class ValuesKeptAfterException(Composed):
    """Keeps what each part returned until the call ends, and takes it for the next call's if another part raised."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[object, ...], Array] = {}

    def value(self, part: Any, x: Array, role: str) -> Array:
        if self.stage != "call":
            return super().value(part, x, role)
        key = role, x.shape, x.dtype
        if key not in self.kept:
            self.kept[key] = super().value(part, x, role)
        return self.kept[key]

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        self.kept.clear()
        return results


@fault("normed-kept-after-exception", pr="CM-C7", kind="state")
class NormedKeptAfterException(PreNorm):
    """Keeps LN(x) until the call ends, and hands it over in the next call if the sublayer raised."""

    kept: Array | None = None

    def handed(self, call: Call) -> Array:
        if self.stage != "call":
            return super().handed(call)
        if self.kept is None or self.kept.shape != call.x.shape or self.kept.dtype != call.x.dtype:
            self.kept = super().handed(call)
        return self.kept

    def after(self, stage: str, arrays: tuple[Any, ...], results: tuple[Any, ...]) -> tuple[Any, ...]:
        self.kept = None
        return results


@fault("part-without-memory-skipped", everywhere="CM-C7", kind="argument")
class PartWithoutMemorySkipped(Composed):
    """Takes the value of a part that runs out of memory for zero."""

    def value(self, part: Any, x: Array, role: str) -> Array:
        try:
            return super().value(part, x, role)
        except MemoryError:
            return np.zeros(self.shape, self.work)
