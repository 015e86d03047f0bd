"""x of six axes: code that names its axes, or loops over a fixed number of them, ends at four or five."""

from __future__ import annotations

from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import NEGLIGIBLE_EPS, Description, Kinds

_NORMAL: Kinds = tuple(("normal", index) for index in range(9))

#: Groups along the last axis, and along three axes, whose extents differ where they can.
_TRAILING = (
    {"n": 5, "features": (5,), "leading": (2, 3, 2, 2, 2), "repeat": 48},
    {"n": 12, "features": (2, 3, 2), "leading": (3, 2, 2), "repeat": 12},
)


def six_axes_deck(operator: str, requirements: frozenset[str]) -> list[Description]:
    """The cases of an operator that normalises and takes no parts, for these requirements; none for others."""
    plain = Description(operator, 1, _NORMAL, eps=NEGLIGIBLE_EPS, rank=6, requirements=requirements, fast_only=True)
    return [attrs.evolve(plain, **fields) for fields in _fields(operator)]


def _fields(operator: str) -> tuple[dict[str, Any], ...]:
    record = OPERATORS[operator]
    if record.groups is Groups.TRAILING:
        return _TRAILING
    if record.groups is Groups.CHANNEL:
        # In the second case the channels are as many as axis 1 is long, for which it may be taken.
        places = ((1, 5, True), (-1, 3, True), (-2, 5, False))
        around = {"n": 72, "samples": 3}
        return tuple(
            {**around, "channel_axis": axis, "groups": _NORMAL[:count], "training": training}
            for axis, count, training in places
        )
    if record.groups is Groups.SAMPLE_CHANNELS:
        width = {"n": 24, "groups": _NORMAL[:6]}
        if not record.channels_alone:
            width = {"n": 48, "width": 2, "groups": _NORMAL[:6]}
        return tuple({**width, "samples": 2, "channel_axis": axis} for axis in (1, -1))
    return ()
