"""
Cases in which two extents are large at once.

The sweep of sizes (sizes.py) takes one extent at a time past a limit. A kernel counts products too: an index over
samples and positions that is kept in 16 bits, or blocks along both, fail only where two extents are large at once. Some
cases have more than 65,536 values made of extents of some dozens each; others have many long groups, as the layers of
a model do. `quick` goes without them: each costs as much as the sweep of an extent.
"""

from __future__ import annotations

from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description
from .sizes import extents, sized

#: Extents that no size of a block divides; the positions lie along two axes.
_SAMPLES, _POSITIONS = 67, 10 * 7
_SEQUENCES, _STEPS = 65, 67

#: Seven kinds of groups in turn: no block or vector holds seven.
_EDGES = tuple(("edges", index) for index in range(7))


def two_extents_deck(operator: str) -> list[Description]:
    """The cases of an operator in which two extents are large at once."""
    plain = attrs.evolve(sized(operator, extents(operator)[0], 5), groups=_EDGES)
    return [attrs.evolve(plain, **fields) for fields in _fields(operator)]


#: As many long groups as values in each, past 512: a sum over groups that is taken in two stages has blocks along both.
_SQUARE = 520
#: Long groups, more than a wave of 32 holds; and shorter ones, more in a sample than a warp has lanes.
_LONG_GROUPS, _MORE_GROUPS = {"n": 1056, "samples": 9}, {"n": 260, "samples": 2}


def _fields(operator: str) -> list[dict[str, Any]]:
    record = OPERATORS[operator]
    if record.groups is Groups.CHANNEL:
        around = {"n": _SAMPLES * _POSITIONS, "samples": _SAMPLES, "rank": 4, "repeat": 15}
        places = ((True, 1), (True, -1), (False, 1))
        many = {"n": 9 * 64, "samples": 9, "rank": 4, "repeat": 67, "training": True, "channel_axis": 1}
        square = {"n": _SQUARE, "samples": 13, "rank": 4, "repeat": _SQUARE + 1, "training": True, "channel_axis": 1}
        return [many, square, *({**around, "training": training, "channel_axis": axis} for training, axis in places)]
    if record.groups is Groups.SAMPLE_CHANNELS:
        around = {"samples": _SAMPLES, "rank": 4}
        if record.channels_alone:
            several = [{**around, "n": _POSITIONS, "repeat": 15 * _SAMPLES, "channel_axis": axis} for axis in (1, -1)]
            small = {**around, "n": 20, "repeat": 67 * _SAMPLES, "channel_axis": 1}  # more than 4096 planes
            square = {"n": _SQUARE, "samples": 65, "rank": 4, "repeat": _SQUARE}
            return [*several, small, square, {**_LONG_GROUPS, "rank": 4, "repeat": 4 * 9}]
        # Many groups of few positions, and the other way about.
        many = {"width": 2, "n": _POSITIONS, "repeat": 17 * _SAMPLES, "channel_axis": 1}
        few = {"width": 3, "n": 3 * _POSITIONS, "repeat": 5 * _SAMPLES, "channel_axis": -1}
        square = {"n": _SQUARE, "samples": 65, "repeat": _SQUARE}
        long = [{**_LONG_GROUPS, "repeat": 4 * 9}, {**_MORE_GROUPS, "repeat": 33 * 2}, square]
        return [{**around, **many}, {**around, **few}, *({"rank": 4, "width": 2, **one} for one in long)]
    long = {"n": _LONG_GROUPS["n"], "leading": (4, 9), "repeat": 4 * 9}
    square = {"n": _SQUARE, "leading": (_SQUARE + 1,), "repeat": _SQUARE + 1}
    several = [{"n": 17, "leading": (_SEQUENCES, _STEPS), "repeat": _SEQUENCES * _STEPS}, long]
    return [*several, square] if record.has_gain else several
