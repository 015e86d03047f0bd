"""Backward passes: the gain that dx was taken with, and the groups that entered a parameter's gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ....spec.operators import OPERATORS
from .formula_steps import FORMULAS, Array, input_gradient
from .observing import ObservedResult
from .relation import LinearRelation

#: Replacements for gamma in dx, as functions of gamma laid out beside the values of each group.
_GAINS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("1", np.ones_like),
    ("gamma - 1", lambda gamma: gamma - 1),
    ("1 + gamma", lambda gamma: gamma + 1),
    ("|gamma|", np.abs),
    ("gamma^2", np.square),
    ("-gamma", np.negative),
    ("the first value of gamma", lambda gamma: np.broadcast_to(gamma[:1, :1], gamma.shape)),
    ("gamma of the feature before", lambda gamma: np.roll(gamma, 1, axis=1)),
    ("gamma of the feature after", lambda gamma: np.roll(gamma, -1, axis=1)),
    ("gamma in reverse order", lambda gamma: gamma[:, ::-1]),
    (
        "gamma at the number of the group, modulo n,",
        lambda gamma: np.broadcast_to(gamma[0, np.arange(len(gamma)) % gamma.shape[1]][:, None], gamma.shape),
    ),
)

#: Groups that may be the only ones in the sum for a parameter: which of how many.
_PARTS: tuple[tuple[str, Callable[[int], Array]], ...] = (
    ("only the first group", lambda m: np.arange(m) == 0),
    ("only the last group", lambda m: np.arange(m) == m - 1),
    ("all groups but the first", lambda m: np.arange(m) > 0),
    ("all groups but the last", lambda m: np.arange(m) < m - 1),
    ("the first half of the groups, the middle one too,", lambda m: np.arange(m) < (m + 1) // 2),
    ("the first half of the groups, without the middle one,", lambda m: np.arange(m) < m // 2),
    ("every second group, the first first,", lambda m: np.arange(m) % 2 == 0),
    ("every second group, the second first,", lambda m: np.arange(m) % 2 == 1),
    *(
        (f"the groups in whole blocks of {block}", lambda m, block=block: np.arange(m) < m - m % block)
        for block in (2, 4, 8, 16, 32, 64, 128)
    ),
)


def backward_relations(operator: str, name: str) -> Iterator[LinearRelation]:
    """Wrong forms of a normalisation's gradient: another gain in dx, one too many in dgamma, too few groups."""
    record = OPERATORS[operator]
    if name in ("dgamma", "dbeta"):
        yield LinearRelation(
            "gamma times the right value",
            lambda one: _times_gamma(one, one.expected),
            rounded=lambda one: np.abs(_times_gamma(one, one.slack)),
        )
    if record.composed:
        return
    if name == "dx" and "gamma" in record.arguments:
        for words, change in _GAINS:
            yield LinearRelation(f"what the formula gives with {words} in place of gamma", partial(_with_gain, change))
    if name in ("dgamma", "dbeta"):
        for words, among in _PARTS:
            yield LinearRelation(f"the sum over {words}", partial(_over, name, among))
        factor = " xhat" if name == "dgamma" else ""
        words = f"the sum of dx{factor} in place of g{factor}"
        yield LinearRelation(words, partial(_of_dx, name), rounded=partial(_rounded_dx, name))


def _times_gamma(one: ObservedResult, value: Array) -> Array:
    gamma = one.steps.given("gamma")
    return value if gamma is None else value * gamma


def _with_gain(change: Callable[[Array], Array], one: ObservedResult) -> Array:
    steps = one.steps
    if steps.given("gamma") is None:
        return one.expected
    return input_gradient(steps, change(steps.rows(steps.gamma)))


def _of_dx(name: str, one: ObservedResult) -> Array:
    steps = one.steps
    dx = FORMULAS["dx"](steps)
    return steps.total(dx * steps.xhat if name == "dgamma" else dx)


def _rounded_dx(name: str, one: ObservedResult) -> Array:
    """The sum of dx's roundings: those of each of its parts."""
    steps = one.steps
    h, xhat = np.abs(steps.rows(steps.gamma * steps.g)), np.abs(steps.rows(steps.xhat))
    along = np.abs(h * xhat).mean(axis=1, keepdims=True)
    parts = steps.back(steps.r * (h + h.mean(axis=1, keepdims=True) + xhat * along))
    factor = np.abs(steps.xhat) if name == "dgamma" else 1.0
    # The rounding of the mean enters each value in the same way as xhat.
    enlarged = steps.back(1 + np.abs(steps.mean) * steps.r)
    return (steps.n + 16) * one.values.unit * steps.total(parts * factor * enlarged)


def _over(name: str, among: Callable[[int], Array], one: ObservedResult) -> Array:
    steps = one.steps
    terms = steps.g * steps.xhat if name == "dgamma" else steps.g
    return steps.total(steps.back(np.where(among(steps.count)[:, None], steps.rows(terms), 0.0)))
