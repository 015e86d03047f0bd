"""The shape of x for a number of groups and values, and the settings of its call."""

from __future__ import annotations

import math
from typing import Any

from ...spec.operators import OPERATORS, Groups
from .description import Description


def factor(n: int, parts: int) -> tuple[int, ...]:
    """Return ``parts`` factors of n, about equal where its divisors allow: the axes over which a group is spread."""
    sizes: list[int] = []
    rest = n
    for left in range(parts, 1, -1):
        best = 1
        for divisor in range(1, rest + 1):
            if divisor**left > rest:
                break
            if rest % divisor == 0:
                best = divisor
        sizes.append(best)
        rest //= best
    return (rest, *sizes)


def shape_of(description: Description) -> tuple[int, ...]:
    """The shape of x."""
    count, record = description.count_of_groups, OPERATORS[description.operator]
    if record.groups is Groups.CHANNEL:
        around = _around_channels(description)
        place = description.channel_axis % description.rank
        return (*around[:place], count, *around[place:])
    if record.groups is Groups.SAMPLE_CHANNELS:
        width, positions = _within_group(description)
        samples = _samples(description)
        place = description.channel_axis % (len(positions) + 2) - 1
        return (samples, *positions[:place], count // samples * width, *positions[place:])
    features = description.features or (description.n,)
    leading = description.leading if description.leading is not None else (count,)
    return (*leading, *features)


def settings_of(description: Description) -> dict[str, Any]:
    """The keyword arguments of the call."""
    features = description.features or (description.n,)
    values: dict[str, Any] = {
        "eps": description.eps,
        "axes": tuple(range(-len(features), 0)),
        "momentum": description.momentum,
        "training": description.training,
        "channel_axis": description.channel_axis,
    }
    settings = OPERATORS[description.operator].settings
    if "groups" in settings:
        values["groups"] = description.count_of_groups // _samples(description)
    return {name: values[name] for name in settings}


def _around_channels(description: Description) -> tuple[int, ...]:
    """
    The sizes of all axes except the channels', with n values in each channel.

    With ``samples``, the first size is that number, if it divides n. x of rank 2 has one such axis, and n samples.
    """
    n, rank, samples = description.n, description.rank, description.samples
    if samples is None or n % samples or rank == 2:
        return factor(n, rank - 1)
    return (samples, *_positions(description, n // samples))


def _positions(description: Description, number: int) -> tuple[int, ...]:
    """The extents of so many positions: those that the description names if they agree, else about equal ones."""
    axes, named = max(description.rank - 2, 1), description.positions
    return named if named and (len(named), math.prod(named)) == (axes, number) else factor(number, axes)


def _samples(description: Description) -> int:
    """
    How many samples the groups belong to: as many as asked for, else about as many as each has groups.

    A prime number of groups either all belong to one sample or each to its own, by the parity of their length.
    """
    count, asked = description.count_of_groups, description.samples
    if asked and count % asked == 0:
        return asked
    many, few = factor(count, 2)
    return few if few > 1 else (1 if description.n % 2 else many)


def _within_group(description: Description) -> tuple[int, tuple[int, ...]]:
    """How many channels a group has, and the shape of its positions: few or many channels by the parity of the rank."""
    n, rank = description.n, description.rank
    if OPERATORS[description.operator].channels_alone:
        return 1, () if (n, rank) == (1, 2) else _positions(description, n)
    if description.width and n % description.width == 0 and rank > 2:
        return description.width, _positions(description, n // description.width)
    if rank == 2:
        return n, ()
    sizes = factor(n, rank - 1)
    width = sizes[0] if rank % 2 else sizes[-1]
    return width, factor(n // width, rank - 2)


def elements(description: Description) -> int:
    """The number of elements of x."""
    return math.prod((description.n, description.count_of_groups))
