"""
The cases for a function that compiles each new shape: the same cases, on a few shapes of x.

A case keeps its purpose: its requirements, kinds of groups, eps, gamma, beta and cotangent. Only the number of groups
and their length change. If more groups are needed, the case's own kinds of groups are drawn again, so a sum over groups
still adds up the same kinds.
"""

from __future__ import annotations

import math

import attrs

from ...spec.operators import OPERATORS, Groups
from .description import Description

#: The longest group that is replaced, the length that replaces it, and the number of groups. The lengths: one value;
#: seven, where a witness in bfloat16 loses most (witnesses.py); and a length past the lanes of a vector, in the square
#: shape whose calls are repeated (sizes.py). All are odd, so that no block or vector is full, and the middle of 15
#: groups stands in an odd place.
_PLAIN = ((1, 1, 15), (9, 7, 15), (math.inf, 33, 33))
#: Shapes of x for cases about axes, by number of axes. With three axes all sizes are equal; with more, few are. The
#: shape with six axes has an axis of size 1, and a case with five axes uses it.
_TRAILING = {1: (7,), 2: (15, 7), 3: (3, 3, 3), 4: (2, 3, 2, 5), 6: (3, 2, 1, 3, 2, 2)}
#: Shapes of x for operators whose groups are the channels, which are on axis 1 or the last axis. The other axes are
#: ordered as in shapes.py. With five axes all sizes are equal too: one shape for either place of the channels.
_CHANNELS = {2: (7, 15), 3: (3, 3, 3), 4: (2, 3, 2, 2), 5: (2, 2, 2, 2, 2)}
#: Shapes of x for operators whose groups are channels of a sample; the number of groups if the channels are on axis 1,
#: and if they are on the last axis. With three axes all sizes are equal, so that taking one for another does not raise.
_SAMPLES = {
    2: ((9, 21), 3, 3), 3: ((9, 9, 9), 3, 3), 4: ((2, 6, 5, 4), 3, 2), 5: ((2, 6, 2, 1, 2), 2, 2),
}  # fmt: skip
#: The same if each channel is a group; the middle one has an odd index.
_ALONE = {**_SAMPLES, 3: ((9, 7, 7), 7, 7)}
#: Requirements whose checks derive more shapes from that of their case: they run only with three axes.
_DERIVED = frozenset(("LN-L7", "LN-F2", "LN-F3", "LN-F4"))


def in_few_shapes(description: Description) -> Description | None:
    """The description on the nearest of the few shapes; None for a size or a rank that not every framework runs."""
    if description.large or "CM-S1" in description.requirements:
        return description if description.far or "CM-P2" in description.requirements else None
    if description.fast_only:
        return None
    place = _PLACES.get(OPERATORS[description.operator].groups)
    return description if place is None else place(description)


def _trailing(description: Description) -> Description:
    """For an operator that normalises over the last axes."""
    if description.features is None and description.leading is None:
        return _plain(description)
    axes = 1 if description.features is None else len(description.features)
    rank = axes + (1 if description.leading is None else len(description.leading))
    shape = _TRAILING[min(one for one in _TRAILING if one >= rank)]
    leading, features = shape[:-axes], shape[-axes:]
    groups = _groups(description, math.prod(leading))
    n = math.prod(features)
    return attrs.evolve(description, n=n, features=features, leading=leading, groups=groups, repeat=None)


def _channels(description: Description) -> Description:
    """For an operator that normalises each channel."""
    rank, axis = description.rank, description.channel_axis
    if description.n == 1:  # one value a channel is a shape more already
        return attrs.evolve(_plain(description), rank=2, samples=None)
    if (rank, axis % rank) == (2, 1):
        return _plain(description)
    shape = _CHANNELS[rank]
    count, samples = shape[axis], shape[0] if axis % rank else None
    groups = _groups(description, count)
    return attrs.evolve(description, n=math.prod(shape) // count, samples=samples, groups=groups, repeat=None)


def _samples(description: Description) -> Description:
    """For an operator that normalises groups of the channels of each sample, or each channel."""
    alone, single, rank = OPERATORS[description.operator].channels_alone, description.n == 1, description.rank
    last = rank > 2 and description.channel_axis % rank == rank - 1
    if not alone and (single or ("LN-F8" in description.requirements and not last)):
        rank = 2  # one channel a group, or seven values, with which a witness loses most (witnesses.py)
    elif description.requirements & _DERIVED or (alone and (rank == 2 or "LN-F8" in description.requirements)):
        rank = 3
    shape, *by_place = (_ALONE if alone else _SAMPLES)[rank]
    axis = rank - 1 if last else 1
    samples, channels = shape[0], shape[axis]
    each = channels if alone or single else by_place[last]  # groups of a sample
    return attrs.evolve(
        description,
        n=1 if single else math.prod(shape[1:]) // each,
        rank=rank,
        channel_axis=axis - rank if description.channel_axis < 0 else axis,
        samples=samples,
        width=channels // each,
        groups=_groups(description, samples * each),
        repeat=None,
    )


def _plain(description: Description) -> Description:
    """The description with another number of groups, of another length."""
    n, count = next((n, count) for most, n, count in _PLAIN if description.n <= most)
    return attrs.evolve(description, n=n, groups=_groups(description, count), repeat=None)


def _groups(description: Description, count: int) -> tuple[tuple[str, int], ...]:
    """``count`` groups: those of the description, in turn."""
    had = description.groups
    return tuple(had[place % len(had)] for place in range(count))


#: How an operator's cases get few shapes, by how its groups lie. Cases of other operators keep theirs.
_PLACES = {Groups.TRAILING: _trailing, Groups.CHANNEL: _channels, Groups.SAMPLE_CHANNELS: _samples}
