"""
Large cases of everything that small cases show, because a kernel's path for large calls has its own code for all of it.

The sweep of sizes (sizes.py) takes every extent past every threshold and leaves the rest as it is: both parameters
given, an eps that cannot show, contiguous memory. These cases take one size, past the usual thresholds, and try one by
one the things that such a path may get wrong. They do not take every threshold again: a mistake that begins past one of
them usually goes on, and where a path ends, the sweep shows whether its formula holds.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description
from .sizes import RECIPES

#: Past 4096, and a product of factors that are past nearly all thresholds or far below them: 4 * 1025 and 2 * 2050.
_LONG = 4100
#: Past 1024: the number of channels or groups, each with few values.
_MANY = 1030
#: eps so far below the variance that neither its value nor its place can show.
_NONE = 2.0**-100

_NORMAL = (("normal", 0), ("normal", 1), ("scaled", 0), ("normal", 2))
_NEAR = (("near_eps", 0), ("near_eps", 1), ("near_eps", 2))
#: With this many values a sound sum still resolves the deviation from the mean, which a one-pass variance loses. With
#: more, the error that a plain sum may make, n u mean(abs(x)), would hide the loss.
_FAR = {"n": 260, "groups": (("offset", 3), ("normal", 0)), "gamma": "ones", "beta": "none"}

_VALUES = frozenset(("CM-S1", "CM-T1", "CM-T2", "CM-T3"))
_LAYOUTS = _VALUES | {"CM-V1", "CM-V2", "CM-V3"}
#: Requirements about memory after a call, and about values that are not finite.
_MEMORY = _VALUES | {"CM-P1", "CM-P4", "CM-P5", "CM-N1", "CM-N3", "CM-N4", "CM-N6", "CM-N7"}
_MIXED = frozenset(("CM-D1", "CM-D2", "CM-D3"))

Fields = dict[str, object]


def _shapes(operator: str) -> tuple[Fields, ...]:
    """The large shapes of an operator: long groups, and many groups if they are counted separately."""
    record = OPERATORS[operator]
    if record.groups is Groups.CHANNEL:
        many, long = {"n": 6, "repeat": _MANY, "samples": 3, "rank": 3}, {"n": _LONG, "samples": 2, "rank": 4}
        return tuple({**one, "training": training} for training in (True, False) for one in (many, long))
    if record.groups is Groups.SAMPLE_CHANNELS:
        many, long = {"n": 6, "repeat": _MANY, "rank": 3}, {"n": _LONG, "rank": 4}
        width = {} if record.channels_alone else {"width": 2}
        return tuple({**one, "samples": 2, **width} for one in (many, long))
    return ({"n": _LONG},)


def _in_shape(operator: str) -> Iterator[tuple[frozenset[str], Fields]]:
    """The trials in each large shape: the requirements, and the fields in which the case differs."""
    normalises = "eps" in OPERATORS[operator].settings
    if normalises:
        yield _VALUES, {"gamma": "none"}
        yield _VALUES, {"beta": "none"}
        yield _VALUES, {"gamma": "none", "beta": "none"}
        yield _VALUES, {"eps": 1e-3, "groups": _NEAR}
    yield _LAYOUTS, {}
    if OPERATORS[operator].has_channels:
        yield _LAYOUTS, {"channel_axis": -1}
    yield _MEMORY, {}
    if not OPERATORS[operator].composed:
        yield _MIXED, {"mixed": True, "gamma": "mixed"}  # values that 16 bits do not hold


def _of_rows() -> Iterator[tuple[frozenset[str], Fields]]:
    """More trials for operators whose groups lie along trailing axes."""
    yield _VALUES, {"leading": (), "groups": _NORMAL[:1]}
    several = {"features": (4, 1025), "leading": (4,)}
    yield _LAYOUTS, several
    yield _VALUES, {**several, "gamma": "none"}
    yield _VALUES, {**several, "beta": "none"}


def large_deck(operator: str, profile: str) -> list[Description]:
    """
    The large cases of an operator.

    `quick` has each trial in every second shape, and no shape with two large extents.
    """
    recipe = {"recipe": RECIPES[operator]} if OPERATORS[operator].composed else {}
    plain = Description(operator, 1, _NORMAL, eps=_NONE, gamma="powers", only=True)
    tried = [
        (requirements, {**shape, **fields})
        for number, shape in enumerate(_shapes(operator))
        for place, (requirements, fields) in enumerate(_in_shape(operator))
        if profile != "quick" or (number + place) % 2 == 0 or len(_shapes(operator)) == 1
    ]
    if OPERATORS[operator].centred and OPERATORS[operator].normalises:
        tried.append((_VALUES, _FAR))
    if OPERATORS[operator].groups is Groups.TRAILING:
        tried += [(requirements, {"n": _LONG, **fields}) for requirements, fields in _of_rows()]
        if profile != "quick":
            tried += [(_VALUES, {"n": 130, "repeat": _MANY}), (_VALUES, {"n": _MANY, "repeat": 130})]
    return [
        attrs.evolve(plain, **recipe, **fields, requirements=requirements)  # type: ignore[arg-type]
        for requirements, fields in tried
    ]
