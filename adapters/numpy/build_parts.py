"""Build a part as an object with its own derivatives, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...spec.parts import Part
from ..bridge import Bridge
from ..operation import Operation
from .arithmetic import Array
from .part_behaviours import BEHAVIOURS
from .part_formulas import FORMULAS
from .part_fusions import FUSIONS
from .parts import Leaf, Material, NumpyPart

#: The class for each kind of part.
_KINDS: Mapping[str, type[NumpyPart]] = {**BEHAVIOURS, **FORMULAS, **FUSIONS}


def build_part(
    part: Part,
    tensors: Mapping[str, Array],
    bridge: Bridge,
    *,
    memory: dict[Any, Any],
    notes: dict[Any, Any] | None,
    tangents: Mapping[str, Array] | None,
    operation: Operation | None,
) -> NumpyPart:
    """The part as an object; see adapters.build_parts.build_part."""
    inner = [
        build_part(one, tensors, bridge, memory=memory, notes=notes, tangents=tangents, operation=operation)
        for one in part.inner
    ]
    leaves = [Leaf(name, tensors[name], (tangents or {}).get(name), notes) for name in part.leaves]
    derivative = notes is not None or tangents is not None
    return _KINDS[part.kind](Material(part, bridge, leaves, inner, memory, derivative, operation))
