"""Groups at the ends of a dtype's range: what a wrong formula gives there depends on how its author scaled them."""

from __future__ import annotations

import attrs

from ..cases.description import Description

#: Groups in whose squares the range of a dtype ends.
_EXTREME = frozenset({"subnormal", "near_overflow"})


def is_extreme(description: Description) -> bool:
    """Whether a case has groups in which a wrong formula may underflow or overflow where the right one does not."""
    return any(name in _EXTREME for name, _ in description.groups)


def tamed(description: Description) -> Description:
    """The case with normal groups in the place of these."""
    groups = tuple(("normal", index) if name in _EXTREME else (name, index) for name, index in description.groups)
    return attrs.evolve(description, groups=groups)
