"""Axes: the other values of x that were normalised together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ....spec.operators import OPERATORS
from .formula_steps import Array, FormulaSteps
from .observing import ObservedResult
from .relation import LinearRelation

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


def axes_relations(operator: str) -> Iterator[LinearRelation]:
    """y with other values normalised together: along other axes, each half of a group, each channel alone."""
    record = OPERATORS[operator]
    if record.composed and not record.normalises:
        return
    yield LinearRelation("what the formula gives for each half of a group by itself", _by_halves)
    if record.has_channels:
        yield LinearRelation("what the formula gives over the channels", _over_channels)
        words = "what the formula gives for each channel of a sample by itself"
        yield LinearRelation(words, _over_places)
    for words, axes in _AXES:
        yield LinearRelation(f"what the formula gives {words}", partial(_over, axes))


def _normalised(steps: FormulaSteps, values: Array, axes: tuple[int, ...]) -> Array:
    """xhat over some axes of an array."""
    centre = values.mean(axes, keepdims=True) if steps.case.record.centred else 0.0
    return (values - centre) / np.sqrt(np.square(values - centre).mean(axes, keepdims=True) + steps.eps)


def _over(axes: Callable[[int], tuple[int, ...]], one: ObservedResult) -> Array:
    steps = one.steps
    if not steps.training:
        return one.expected
    values = steps.back(steps.data)
    return steps.gamma * _normalised(steps, values, axes(values.ndim)) + steps.beta


def _over_channels(one: ObservedResult) -> Array:
    return _over(lambda rank: (one.case.settings["channel_axis"] % rank,), one)


def _over_places(one: ObservedResult) -> Array:
    steps = one.steps
    channel = steps.case.settings["channel_axis"] % steps.x.ndim
    axes = tuple(axis for axis in range(1, steps.x.ndim) if axis != channel)
    return steps.gamma * _normalised(steps, steps.x, axes) + steps.beta


def _by_halves(one: ObservedResult) -> Array:
    steps = one.steps
    if not steps.training:
        return one.expected
    half = steps.n // 2
    parts = [part for part in (steps.data[:, :half], steps.data[:, half:]) if part.shape[1]]
    rows = np.concatenate([_normalised(steps, part, (1,)) for part in parts], axis=1)
    return steps.gamma * steps.back(rows) + steps.beta
