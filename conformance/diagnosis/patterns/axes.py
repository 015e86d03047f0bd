"""Axes: the other values of x that were normalised together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....spec.operators import OPERATORS
from .facts import Facts
from .observing import Seen
from .relation import Relation, said

Array = np.ndarray

#: Axes that may have been normalised over, given the number of axes of x.
_AXES: tuple[tuple[str, Callable[[int], tuple[int, ...]]], ...] = (
    ("over all axes but the first", lambda rank: tuple(range(1, rank))),
    ("over the last axis", lambda rank: (rank - 1,)),
    ("over the first axis", lambda rank: (0,)),
    ("over axis 1", lambda rank: (1,) if rank > 1 else ()),
    ("over all axes but the last", lambda rank: tuple(range(rank - 1))),
    ("over all axes but the first two", lambda rank: tuple(range(2, rank))),
    ("over all axes but axis 1", lambda rank: (0, *range(2, rank))),
    ("over all axes", lambda rank: tuple(range(rank))),
)


def axes_relations(operator: str) -> Iterator[Relation]:
    """y with other values normalised together: along other axes, each half of a group, each channel alone."""
    record = OPERATORS[operator]
    if record.composed and not record.normalises:
        return
    yield Relation(said("what the formula gives for each half of a group by itself"), _by_halves)
    if record.has_channels:
        yield Relation(said("what the formula gives over the channels"), _over_channels)
        words = "what the formula gives for each channel of a sample by itself"
        yield Relation(said(words), lambda one: _over_places(one.facts))
    for words, axes in _AXES:
        yield Relation(said(f"what the formula gives {words}"), _over(axes))


def _normalised(facts: Facts, values: Array, axes: tuple[int, ...]) -> Array:
    """xhat over some axes of an array."""
    centre = values.mean(axes, keepdims=True) if facts.case.record.centred else 0.0
    return (values - centre) / np.sqrt(np.square(values - centre).mean(axes, keepdims=True) + facts.eps)


def _over(axes: Callable[[int], tuple[int, ...]]) -> Callable[[Seen], Array]:
    def made(one: Seen) -> Array:
        facts = one.facts
        if not facts.training:
            return one.expected
        values = facts.back(facts.data)
        return facts.gamma * _normalised(facts, values, axes(values.ndim)) + facts.beta

    return made


def _over_channels(one: Seen) -> Array:
    return _over(lambda rank: (one.facts.case.settings["channel_axis"] % rank,))(one)


def _over_places(facts: Facts) -> Array:
    channel = facts.case.settings["channel_axis"] % facts.x.ndim
    axes = tuple(axis for axis in range(1, facts.x.ndim) if axis != channel)
    return facts.gamma * _normalised(facts, facts.x, axes) + facts.beta


def _by_halves(one: Seen) -> Array:
    facts = one.facts
    if not facts.training:
        return one.expected
    half = facts.n // 2
    parts = [part for part in (facts.data[:, :half], facts.data[:, half:]) if part.shape[1]]
    rows = np.concatenate([_normalised(facts, part, (1,)) for part in parts], axis=1)
    return facts.gamma * facts.back(rows) + facts.beta
