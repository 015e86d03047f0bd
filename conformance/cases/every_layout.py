"""
eps, a constant group and values that are not finite, on every layout of x.

The cases about axes have an eps too small to show, so that a wrong axis stands alone. But code has a path of its own
for a layout: rows of attention heads, images with their channels last. These cases show what such a path does with eps,
where nothing deviates, with NaN, and in derivatives of derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description, Kinds

#: Its place shows where a variance is about as large.
_EPS = 2.0**-4
#: A group of zeros is padding.
_KINDS: Kinds = (("near_eps", 0), ("constant", 0), ("near_eps", 3), ("normal", 1), ("constant", 2), ("near_eps", 1))

#: Leading and normalised axes. The first two are those that language models have: sequences, and heads of attention.
_TRAILING = (
    ((2, 3), (5,)), ((2, 2, 3), (5,)), ((), (5,)), ((), (2, 3)), ((3,), (2, 3)), ((), (2, 2, 3)), ((2, 2), (2, 3)),
    ((3,), (2, 2, 2)), ((2, 3, 2, 2), (5,)), ((2, 2, 2), (2, 3)),
)  # fmt: skip
#: The number of axes and the place of the channels. The first is that of images with their channels last.
_CHANNELS = ((4, -1), (3, -1), (5, -1), (4, 1), (5, 1), (4, 0), (3, 0), (4, 2))
_SAMPLE_CHANNELS = ((4, -1), (3, -1), (5, -1), (4, 1), (5, 1), (4, 2))


def every_layout_deck(operator: str, profile: str, derivatives: frozenset[str]) -> list[Description]:
    """The cases of a normalisation; at `quick` of the most common layouts, and without derivatives of derivatives."""
    quick = profile == "quick"
    requirements = frozenset(("CM-N1", "CM-N3", "CM-N4", "CM-N6", "CM-N7")) | (frozenset() if quick else derivatives)
    plain = Description(operator, 12, _groups(4), eps=_EPS, requirements=requirements)
    groups = OPERATORS[operator].groups
    if groups is Groups.TRAILING:
        found = [_of_rows(*axes) for axes in _TRAILING[: 2 if quick else None]]
        found += [] if quick else [{**_of_rows((), (5,)), "groups": (("constant", 2),)}]
    elif groups is Groups.CHANNEL:
        found = [
            {"rank": rank, "channel_axis": axis, "samples": 2, "training": training}
            for rank, axis in _CHANNELS[: 1 if quick else None]
            for training in (True, False)
        ]
    else:
        found = [
            {"rank": rank, "channel_axis": axis, "samples": 2, "groups": _groups(8)}
            for rank, axis in _SAMPLE_CHANNELS[: 1 if quick else None]
        ]
    return [attrs.evolve(plain, **fields) for fields in found]


def _of_rows(leading: Sequence[int], features: Sequence[int]) -> dict[str, Any]:
    return {
        "n": math.prod(features),
        "groups": _groups(math.prod(leading)),
        "leading": tuple(leading),
        "features": tuple(features),
    }


def _groups(count: int) -> Kinds:
    return tuple(_KINDS[place % len(_KINDS)] for place in range(count))
