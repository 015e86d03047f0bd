"""
Cases of middle and large size of everything that small cases show, because a kernel's path for them has its own code.

The sweep of sizes (sizes.py) takes every extent past every threshold and leaves the rest as it is: both parameters
given, an eps that cannot show, contiguous memory, one recipe. These cases take a few sizes, those of most layers and
one past the usual thresholds, and try one by one the things that such a path may get wrong. They do not take every
threshold again: a mistake that begins past one of them usually goes on, and where a path ends, the sweep shows whether
its formula holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import NEGLIGIBLE_EPS, Description
from .shapes import factor
from .sizes import RECIPES

#: Past 4096, and a product of factors that are past nearly all thresholds or far below them: 4 * 1025 and 2 * 2050.
_LONG = 4100
#: Past 1024: the number of channels or groups, each with few values.
_MANY = 1030
#: The sizes of most layers, as (values in a group, channels or groups). Some fill whole vectors and blocks, some do
#: not. No two pairs agree in both numbers.
_MIDDLE = ((160, 48), (390, 160), (768, 390), (2050, 770))
#: The offset of the rotation in `large_deck`. With 2, `quick` checks memory after calls with 390 and 768 values in a
#: group.
_FIRST = 2
#: Many samples of few channels. A plain sum over more samples would lose digits of its own, and a wrong mean over
#: samples is known by all of its digits.
_DEEP = {"n": 8, "repeat": 390, "rank": 4, "samples": 195}
#: Up to here a matrix over the features is judged in some milliseconds.
_MATRIX = 200

#: An eps below those that code puts in place of a smaller one, of which some spare 0; 1e-20 is among them.
_FLOORED = 2.0**-70

_NORMAL = (("normal", 0), ("normal", 1), ("scaled", 0), ("normal", 2))
_NEAR = (("near_eps", 0), ("near_eps", 1), ("near_eps", 2))
#: Far from zero: where a one-pass variance loses more than the error that a plain sum may make, n u mean(abs(x)). In
#: float32 that ends at about 700 values; in float64 it holds at any length. What is lost is rounding, so some groups
#: in three show nothing.
_FAR = {"gamma": "ones", "beta": "none"}
_FAR_SINGLE = tuple(("offset", index) for index in (2, 6, 2, 6, 2, 6))
_FAR_DOUBLE = tuple(("offset", index) for index in (0, 1, 4))
#: A variance put together from parts lacks most of itself if the means of the parts are left out.
_RAMPS = (("ramp", 0), ("ramp", 1))

_VALUES = frozenset(("CM-S1", "CM-T1", "CM-T2", "CM-T3"))
_LAYOUTS = _VALUES | {"CM-V1", "CM-V2", "CM-V3", "LN-G11"}
#: Requirements about memory after a call, about values that are not finite, and about inference mode.
_MEMORY = _VALUES | {"CM-P1", "CM-P4", "CM-P5", "CM-N1", "CM-N3", "CM-N4", "CM-N6", "CM-N7", "LN-L15"}
_MIXED = frozenset(("CM-D1", "CM-D2", "CM-D3"))

#: The recipes with each of the parts that the sweep's leaves out, without a matrix and with one.
_PARTS = {
    "residual": (("activation",), ("shortcut",)),
    "pre_norm": (("leaf",), ("tanh_linear",)),
    "post_norm": (("leaf",), ("tanh_linear",)),
    "highway": (("leaf_carry",), ("chain",)),
    "mhc": (("fuse_sum",), ("fuse_weighted",)),
}

Fields = dict[str, Any]


def _shapes(operator: str, long: int, many: int, *, middle: bool) -> tuple[Fields, ...]:
    """
    The shapes of an operator with groups of ``long`` values, and with ``many`` groups if they are counted separately.

    Groups along trailing axes are counted in the ``middle``.
    """
    record = OPERATORS[operator]
    if record.groups is Groups.CHANNEL:
        wide, tall = {"n": 8, "repeat": many, "samples": 2, "rank": 4}, {"n": long, "samples": 2, "rank": 4}
        return tuple({**one, "training": training} for training in (True, False) for one in (wide, tall))
    if record.groups is Groups.SAMPLE_CHANNELS:
        wide, tall = {"n": 8, "repeat": many, "rank": 4}, {"n": long, "rank": 4}
        width = {} if record.channels_alone else {"width": 2}
        return tuple({**one, "samples": 2, **width} for one in (wide, tall))
    leading = (many,) if many % 4 else factor(many, 2)  # a matrix where the rows are not whole vectors
    several = {"n": 6, "repeat": many, "leading": leading}
    return ({"n": long}, several) if middle else ({"n": long},)


def _in_shape(operator: str, shape: Fields, *, middle: bool) -> Iterator[tuple[frozenset[str], Fields]]:
    """The trials in each shape: the requirements, and the fields in which the case differs."""
    record = OPERATORS[operator]
    eps, floored = {"eps": 1e-3, "groups": _NEAR}, {"eps": _FLOORED, "groups": _NEAR}
    if "eps" in record.settings:
        yield _VALUES, {"gamma": "none"}
        if middle:  # two in one call
            yield _VALUES, {"beta": "none", **eps}
            yield _VALUES, {"gamma": "none", "beta": "none", **floored}
        else:
            yield _VALUES, {"beta": "none"}
            yield _VALUES, {"gamma": "none", "beta": "none"}
            yield _VALUES, eps
            yield _VALUES, floored
    yield _LAYOUTS, {}
    if record.has_channels:
        yield _LAYOUTS, {"channel_axis": -1}
    yield _MEMORY, {}
    if not record.composed:
        yield _MIXED, {"mixed": True, "gamma": "mixed"}  # values that 16 bits do not hold
        return
    without, over = _PARTS[operator]
    for recipe in over * (shape["n"] <= _MATRIX) + without:
        yield _VALUES, {"recipe": recipe, "count": 2}


def _of_rows(long: int) -> Iterator[tuple[frozenset[str], Fields]]:
    """More trials for operators whose groups lie along trailing axes."""
    yield _VALUES, {"leading": (), "groups": _NORMAL[:1]}
    several = {"features": (2, long // 2), "leading": (2, 2)}
    yield _LAYOUTS, several
    yield _VALUES, {**several, "gamma": "none"}
    yield _VALUES, {**several, "beta": "none"}


def _at(operator: str, long: int, many: int, *, middle: bool) -> list[list[tuple[frozenset[str], Fields]]]:
    """The trials in each shape of a size."""
    found = [
        [(requirements, {**shape, **fields}) for requirements, fields in _in_shape(operator, shape, middle=middle)]
        for shape in _shapes(operator, long, many, middle=middle)
    ]
    if OPERATORS[operator].groups is Groups.TRAILING:
        found.append([(requirements, {"n": long, **fields}) for requirements, fields in _of_rows(long)])
    return found


def _every(operator: str, profile: str, requirements: frozenset[str]) -> int:
    """
    A trial is used in one of this many middle sizes: 2 means every second. Its shapes take turns.

    Trials of layouts and memory are rarer, because they are expensive.
    """
    record = OPERATORS[operator]
    if profile == "quick" and requirements == _VALUES:
        return 4 if record.has_channels else 2
    if profile == "quick":
        return 8 if record.has_modes else 4  # modes double the shapes
    return 2 if profile == "standard" and record.has_channels else 1


def large_deck(operator: str, profile: str) -> list[Description]:
    """
    The cases of middle and large size of an operator.

    `quick` has each large trial in every second shape, and no shape with two large extents.
    """
    record = OPERATORS[operator]
    tried = [
        trial
        for number, size in enumerate(_MIDDLE)
        for turn, trials in enumerate(_at(operator, *size, middle=True))
        for place, trial in enumerate(trials)
        if (number + turn + place + _FIRST) % _every(operator, profile, trial[0]) == 0
    ]
    large = _at(operator, _LONG, _MANY, middle=False)
    tried += [
        trial
        for turn, trials in enumerate(large)
        for place, trial in enumerate(trials)
        if profile != "quick" or not record.has_channels or (turn + place) % 2 == 0
    ]
    if record.centred and record.normalises:
        tried += [(_VALUES, {**_FAR, "n": n, "groups": _FAR_SINGLE}) for n in (260, 390)]
        tried += [(_VALUES, {**_FAR, "n": n, "groups": _FAR_DOUBLE}) for n in (2050, _LONG)]
    if record.normalises:
        tried += [(_VALUES, {"n": n, "groups": _RAMPS}) for n in (390, _LONG)]
    if record.groups is Groups.TRAILING and profile != "quick":
        tried += [(_VALUES, {"n": 130, "repeat": _MANY}), (_VALUES, {"n": _MANY, "repeat": 130})]
    if record.groups is Groups.SAMPLE_CHANNELS:
        deep = {**_DEEP, "width": None if record.channels_alone else 2}
        tried += [(_VALUES, {**deep, **one}) for one in ({"gamma": "none"}, {"beta": "none"})]
    recipe = {"recipe": RECIPES[operator]} if record.composed else {}
    plain = Description(operator, 1, _NORMAL, eps=NEGLIGIBLE_EPS, gamma="powers", only=True)
    made = [attrs.evolve(plain, **{**recipe, **fields}, requirements=requirements) for requirements, fields in tried]  # type: ignore[arg-type]
    # A case that is neither large nor for CM-S1 would be drawn again, and put on the few shapes, as small ones are.
    return [one for one in made if one.large or "CM-S1" in one.requirements]
