"""
The cases of a function for which each new shape is compiled: the same cases, on a few shapes of x.

A case keeps what it is for: its requirements, its kinds of groups, eps, gamma, beta and cotangent. What changes is how
many groups it has, and how long they are. Groups that a case does not name are its own once more, drawn anew, so that
a sum over groups still is one of such groups.
"""

from __future__ import annotations

import math

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description

#: Lengths of groups, each with the longest that it stands for, and how many groups there are: one value; a few, the
#: numbers of a witness and one more; past the lanes of a vector, in the square whose calls are repeated (sizes.py).
#: All are odd, so that no block or vector is full.
_PLAIN = ((1, 1, 13), (9, 5, 13), (math.inf, 33, 33))
#: x where a case is about its axes, by their number: sizes that coincide in three dimensions and few that do in more,
#: with a 1 among six. Who has five has six.
_BY_RANK = {1: (7,), 2: (13, 5), 3: (3, 3, 3), 4: (2, 3, 2, 5), 6: (3, 2, 1, 3, 2, 2)}


def in_few_shapes(description: Description) -> Description | None:
    """The description on the nearest of the few shapes; None for a size that not every framework is put to."""
    if "CM-S1" in description.requirements:
        return description if description.far or "CM-P2" in description.requirements else None
    if OPERATORS[description.operator].groups is Groups.TRAILING:
        return _trailing(description)
    return description


def _trailing(description: Description) -> Description:
    """What normalises over the last axes."""
    features, leading = description.features, description.leading
    if features is None or leading is None:
        n, count = next((n, count) for most, n, count in _PLAIN if description.n <= most)
        return attrs.evolve(description, n=n, groups=_groups(description, count))
    rank, axes = len(leading) + len(features), len(features)
    shape = _BY_RANK[min(one for one in _BY_RANK if one >= rank)]
    leading, features = shape[:-axes], shape[-axes:]
    return attrs.evolve(
        description,
        n=math.prod(features),
        features=features,
        leading=leading,
        groups=_groups(description, math.prod(leading)),
    )


def _groups(description: Description, count: int) -> tuple[tuple[str, int], ...]:
    """So many groups: those of the description, in turn."""
    had = description.groups
    return tuple(had[place % len(had)] for place in range(count))
