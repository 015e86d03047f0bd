"""One callable in two roles of a composed operator, as where a module is passed twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...spec.parts import Part
from ..cases.case import Case

#: Pairs of roles in which one callable may stand.
_PAIRS = {
    "residual": (("branch", "shortcut"), ("branch", "activation")),
    "highway": (("gate", "carry"), ("transform", "gate"), ("transform", "carry")),
    "mhc": (("branches.0", "branches.1"),),
}


def handed_twice(case: Case) -> Iterator[tuple[str, str, Case]]:
    """Two roles of a case, and the case with the part of the first in both; again for each pair that it has."""
    for first, second in _PAIRS.get(case.operator, ()):
        role = first.partition(".")[0]
        parts = case.parts[role]
        if isinstance(parts, tuple):
            if len(parts) > 1:
                common = Part("common", inner=parts[:1])
                yield first, second, case.replace(parts={**case.parts, role: (common, common, *parts[2:])})
        else:
            assert parts is not None
            common = Part("common", inner=(parts,))
            yield first, second, case.replace(parts={**case.parts, first: common, second: common})


def in_two_callables(twice: Case) -> Case:
    """A case that hands one part twice, with a callable of its own in each of both roles."""
    return twice.replace(parts={role: _without_common(part) for role, part in twice.parts.items()})


def _without_common(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_without_common, part))
    return part.inner[0] if isinstance(part, Part) and part.kind == "common" else part
