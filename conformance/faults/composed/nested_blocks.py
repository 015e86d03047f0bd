"""Faults of a block inside a block: the inner call writes to a place that the outer one, still under way, reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....adapters.numpy.operators.blocks import Block, Call, Gradients
from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.highway import Highway, Paths
from ....adapters.numpy.operators.mhc import Mhc
from ..registry import fault

Array = np.ndarray


@fault("skip-in-a-slot", rs="CM-C12", pr="CM-C12", kind="state")
class SkipInASlot(Composed):
    """Keeps the skip path in one place while the part runs, and adds what lies there afterwards."""

    kept: Array | None = None

    def skip(self, x: Array, other: Any) -> Array:
        kept: Array = super().skip(x, other)  # type: ignore[misc]
        self.kept = kept
        return kept

    def add(self, skip: Array, through: Array) -> Array:
        return super().add(self.kept, through)  # type: ignore[misc]


@fault("parameters-in-a-slot", pr="CM-C12", po="CM-C12", kind="state")
class ParametersInASlot(Block):
    """Keeps gamma, beta and eps in one place for the normalisation and its gradients: those of the last call count."""

    kept: Call | None = None

    def begin_block(self, arrays: tuple[Any, ...], eps: float, *more: str) -> tuple[Call, tuple[Any, ...]]:
        self.kept, rest = super().begin_block(arrays, eps, *more)
        return self.kept, rest

    def latest(self, call: Call) -> Call:
        """The call with the parameters that lie there."""
        kept = call if self.kept is None else self.kept
        return replace(call, gamma=kept.gamma, beta=kept.beta, eps=kept.eps)

    def normed(self, array: Array, call: Call, role: str = "x") -> Array:
        return super().normed(array, self.latest(call), role)

    def norm_gradients(self, array: Array, call: Call, g: Array) -> Gradients:
        return super().norm_gradients(array, self.latest(call), g)


@fault("transform-in-a-slot", hw="CM-C12", kind="state")
class TransformInASlot(Highway):
    """Keeps what the transform returned in one place while the gates are computed."""

    kept: Array | None = None

    def value(self, part: Any, x: Array, role: str) -> Array:
        found = super().value(part, x, role)
        if role == "transform":
            self.kept = found
        return found

    def mix(self, p: Paths) -> Array:
        return super().mix(p if self.kept is None else replace(p, transformed=self.kept))


@fault("x-in-a-slot", hw="CM-C12", kind="state")
class XInASlot(Highway):
    """Keeps x in one place while its parts run, and carries what lies there afterwards."""

    kept: Array | None = None

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        self.kept = x
        found = super().paths(x, transform, gate, carry)
        return replace(found, x=self.read(self.kept, "x"))


@fault("x-for-branches-in-a-slot", mh="CM-C12", kind="state")
class XForBranchesInASlot(Mhc):
    """Keeps x in one place, and hands each branch what lies there."""

    kept: Array | None = None

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        self.kept = x
        return [self.value(branch, self.kept, f"branches.{place}") for place, branch in enumerate(branches)]


@fault("outputs-in-a-list-for-their-number", mh="CM-C12", kind="state")
class OutputsInAListForTheirNumber(Mhc):
    """Collects the branches' outputs in a list that all calls with as many branches share."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, list[Any]] = {}

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        if self.stage != "call":
            return super().outputs(x, branches)
        kept = self.kept.setdefault(len(branches), [None] * len(branches))
        for place, branch in enumerate(branches):
            kept[place] = self.value(branch, x, f"branches.{place}")
        return list(kept)


@fault("outputs-in-one-list", mh="CM-C12", kind="state")
class OutputsInOneList(Mhc):
    """Collects the branches' outputs in one list, which every call empties at its start."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Array] = []

    def outputs(self, x: Array, branches: Sequence[Any]) -> list[Array]:
        if self.stage != "call":
            return super().outputs(x, branches)
        self.kept.clear()
        for place, branch in enumerate(branches):
            self.kept.append(self.value(branch, x, f"branches.{place}"))
        return list(self.kept)
