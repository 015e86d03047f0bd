"""
Each choice of parameters on each place of the groups.

Code has a path for the place of its groups (rows, heads of attention, images with their channels last), and one for
each parameter that is absent. A mistake in a path for both shows only where both meet: norms without an affine map on
x whose channels lie last, one group of all channels in three axes. `quick` has one choice for each place, in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import attrs

from ...spec.operators import OPERATORS, Groups, Operator
from .description import NEGLIGIBLE_EPS, Description, Kinds

#: gamma and beta. Both are there in many other cases.
_CHOICES = (("mixed", "none"), ("none", "none"), ("none", "mixed"), ("mixed", "mixed"))
_CHOICES_OF_GAMMA = (("none", "none"), ("mixed", "none"))

#: The axes before those that are normalised, and these. Neighbours differ in length, so that an exchange of two shows.
_LEADING: tuple[tuple[int, ...], ...] = ((), (4,), (4, 3), (2, 4, 3))
_FEATURES: tuple[tuple[int, ...], ...] = ((5,), (2, 5), (2, 3, 2))

#: The number of axes and the place of the channels, with the extents of the axes besides samples and channels.
_PLACES = (
    (2, 1, ()), (3, 1, (5,)), (3, -1, (5,)), (4, 1, (4, 3)), (4, -1, (4, 3)), (5, 1, (3, 2, 3)), (5, -1, (3, 2, 3)),
)  # fmt: skip
_SAMPLES, _CHANNELS = 2, 6

_KINDS: Kinds = tuple(("normal", index) for index in range(9))


def absent_parameters_deck(operator: str, profile: str) -> list[Description]:
    """The cases of a normalisation, each in every layout of x too, and in the framework's inference mode."""
    record = OPERATORS[operator]
    plain = Description(operator, 1, _KINDS, eps=NEGLIGIBLE_EPS, fast_only=True)
    choices = _CHOICES if "beta" in record.arguments else _CHOICES_OF_GAMMA
    found = []
    for place, several in enumerate(_of(record), 1):
        each = list(product(several, choices))
        if profile == "quick":  # in turn: the next choice each time, and the next mode or number of groups
            step, each = (len(choices) + 1, each) if len(several) > 1 else (1, each[:-1])
            each = [each[(place * step + place // len(each)) % len(each)]]
        for fields, (gamma, beta) in each:
            requirements = frozenset(("CM-V1", "LN-L15", *(("LN-F6",) if "none" in (gamma, beta) else ())))
            if (gamma, beta) == ("none", "none") and fields.get("samples") and fields["rank"] > 2:
                fields = _of_one_sample(record, fields)
            found.append(attrs.evolve(plain, gamma=gamma, beta=beta, requirements=requirements, **fields))
    return found


def _of_one_sample(record: Operator, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of the case with one sample in place of several: a batch of one, as when a model serves."""
    of_all = "n" if record.groups is Groups.CHANNEL else "repeat"
    return {**fields, "samples": 1, of_all: fields[of_all] // _SAMPLES}


def _of(record: Operator) -> Iterator[list[dict[str, Any]]]:
    """For each place of the groups, the fields of its cases: one for each mode, or for each number of groups."""
    if record.groups is Groups.TRAILING:
        for leading, features in product(_LEADING, _FEATURES):
            count = math.prod(leading)
            yield [{"n": math.prod(features), "repeat": count, "leading": leading, "features": features}]
        return
    for rank, axis, positions in _PLACES:
        around = {"rank": rank, "channel_axis": axis, "samples": _SAMPLES}
        each = math.prod(positions)
        if record.groups is Groups.CHANNEL:
            fields = {**around, "n": _SAMPLES * each if positions else 7, "repeat": _CHANNELS}
            yield [{**fields, "training": training} for training in (True, False)]
        elif not record.channels_alone:
            widths = (_CHANNELS, 2, 1)
            yield [
                {**around, "n": each * width, "width": width, "repeat": _SAMPLES * _CHANNELS // width}
                for width in widths
            ]
        elif positions:
            yield [{**around, "n": each, "repeat": _SAMPLES * _CHANNELS}]
