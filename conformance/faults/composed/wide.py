"""Faults of more features than small cases have: a part that is given is not used as it is elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....adapters.numpy.operators.highway import Highway, Paths
from ....adapters.numpy.operators.mhc import Mhc
from ....adapters.numpy.operators.residual import Residual
from ..registry import fault

Array = np.ndarray

#: More features than this have a path of their own.
_SMALL = 40


@fault("shortcut-ignored-beyond-40", rs="CM-S1", kind="size")
class ShortcutIgnoredBeyond40(Residual):
    """Adds x in place of the shortcut's value, where there are more than 40 features."""

    def skip(self, x: Array, shortcut: Any) -> Array:
        skip = super().skip(x, shortcut)
        return self.read(x, "x") if x.shape[-1] > _SMALL else skip


@fault("carry-ignored-beyond-40", hw="CM-S1", kind="size")
class CarryIgnoredBeyond40(Highway):
    """Uses c = 1 - t though the carry has a gate of its own, where there are more than 40 features."""

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        p = super().paths(x, transform, gate, carry)
        return replace(p, c=self.coupled_carry(p.logits, p.t)) if x.shape[-1] > _SMALL else p


@fault("fuse-reversed-beyond-40", mh="CM-S1", kind="size")
class FuseReversedBeyond40(Mhc):
    """Passes the branches' values to fuse in reverse order, where there are more than 40 features."""

    def for_fuse(self, outputs: list[Array]) -> list[Array]:
        handed = super().for_fuse(outputs)
        return handed[::-1] if outputs[0].shape[-1] > _SMALL else handed
