"""
Cases in shapes that the layers of models have: both extents are of ordinary size at once.

The sweep of sizes (sizes.py) takes one extent at a time past a limit. A path may be chosen by two: one for images of
many channels and positions may take the variance in one pass, which shows where the mean is large, and one for many
long rows may lose the last tile of a gradient.
"""

from __future__ import annotations

from typing import Any

from ...spec.operators import OPERATORS, Groups
from .description import NEGLIGIBLE_EPS, Description, Kinds

#: A mean that is rounded in a longer group may be off by as much as a variance in one pass.
_OFFSETS: Kinds = tuple(("offset", place) for place in range(8))
_NORMAL: Kinds = tuple(("normal", place) for place in range(8))
#: Images of 8 times 8 positions, two of a batch, with 64 channels, or 32 groups of two.
_SAMPLES, _POSITIONS, _CHANNELS, _WIDTH = 2, 8 * 8, 64, 2
#: Rows of a model's width, more than a tile has, and no whole number of tiles.
_ROWS, _FEATURES = 40, 520


def usual_shapes_deck(operator: str) -> list[Description]:
    """One case of a normalisation; none of a composed operator, whose normalisation is along short rows."""
    fields = _fields(operator)
    if not fields:
        return []
    return [Description(operator, gamma="powers", beta="none", eps=NEGLIGIBLE_EPS, **fields)]


def _fields(operator: str) -> dict[str, Any]:
    record = OPERATORS[operator]
    if record.composed:
        return {}
    if record.groups is Groups.TRAILING:
        return {"groups": _NORMAL, "n": _FEATURES, "repeat": _ROWS}
    image = {"groups": _OFFSETS, "rank": 4, "samples": _SAMPLES}
    if record.groups is Groups.CHANNEL:
        return {**image, "n": _SAMPLES * _POSITIONS, "repeat": _CHANNELS}
    if record.channels_alone:
        return {**image, "n": _POSITIONS, "repeat": _SAMPLES * _CHANNELS}
    return {**image, "n": _WIDTH * _POSITIONS, "width": _WIDTH, "repeat": _SAMPLES * _CHANNELS // _WIDTH}
