"""Groups at the ends of a dtype's range: what a wrong formula gives there depends on how its author scaled them."""

from __future__ import annotations

import attrs

from ..cases.description import Description

#: Kinds of groups whose squares leave the range of a dtype.
_EXTREME = frozenset({"subnormal", "near_overflow", "wide", "huge"})


def is_extreme(description: Description) -> bool:
    """Whether a case has groups in which a wrong formula may underflow or overflow where the right one does not."""
    return any(name in _EXTREME for name, _ in description.groups)


def tamed(description: Description) -> Description:
    """The same case with normal groups in place of extreme ones."""
    groups = tuple(("normal", index) if name in _EXTREME else (name, index) for name, index in description.groups)
    return attrs.evolve(description, groups=groups)
