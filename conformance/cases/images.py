"""
Images that are much wider than tall, or taller than wide, with their channels second and last.

The sweep of sizes (sizes.py) takes the number of positions past each limit, and lays them out nearly square or along
the first of two axes. A kernel has loops and blocks along the rows of an image, or along its columns: what they lose at
their end shows only where that axis is long by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description
from .sizes import extents, sized

#: Lengths just past 64, 128, 256, 512 and 1024. None is a multiple of four, so that a vector or block leaves a rest.
#: `quick` has the second alone, which is past two of these limits.
_SIDES = (65, 131, 259, 515, 1030)
_QUICK = _SIDES[1]
#: The length of the other axis, and the numbers of samples, and of channels in a group of several.
_OTHER, _SAMPLES, _WIDTH = 5, 2, 2


def images_deck(operator: str, profile: str) -> list[Description]:
    """The cases of an operator with channels, each in training and in inference where it has these modes."""
    record = OPERATORS[operator]
    if not record.has_channels:
        return []
    plain = sized(operator, next(one for one in extents(operator) if one.name.startswith("positions")), _OTHER)
    several = 1 if record.channels_alone else _WIDTH
    times = _SAMPLES if record.groups is Groups.CHANNEL else several
    return [
        attrs.evolve(
            plain,
            n=times * math.prod(positions),
            positions=positions,
            rank=4,
            samples=_SAMPLES,
            width=several if record.groups is Groups.SAMPLE_CHANNELS else None,
            channel_axis=axis,
            training=training,
        )
        for positions, axis in _shapes(profile)
        for training in ((True, False) if record.has_modes else (True,))
    ]


def _shapes(profile: str) -> Iterator[tuple[tuple[int, int], int]]:
    """The height and width of each image, and the place of its channels."""
    if profile == "quick":
        yield (_OTHER, _QUICK), 1
        yield (_QUICK, _OTHER), -1
        return
    for side, axis in product(_SIDES, (1, -1)):
        yield from (((_OTHER, side), axis), ((side, _OTHER), axis))
