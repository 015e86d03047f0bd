"""Faults of gradients where only some inputs need one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ..neighbours import Prepared
from ..registry import fault

Array = np.ndarray


@fault(
    "parts-detached-where-frozen",
    rs="RS-G10",
    pr="PR-G11",
    po="PO-G11",
    hw="HW-G12",
    mh="MH-G14",
    kind="gradient",
)
class PartsDetachedWhereFrozen(Prepared, Composed):
    """Takes the parts for constants in dx where x alone needs a gradient."""

    def pulled(self, part: Any, x: Array, g: Array, role: str) -> Array:
        through = super().pulled(part, x, g, role)
        return np.zeros_like(through) if self.wrt == ("x",) else through
