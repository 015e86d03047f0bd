"""Parameters: what a normalisation used in place of gamma and beta."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .formula_steps import Array
from .observing import ObservedResult
from .relation import LinearRelation

#: Replacements for gamma. Below, _MOVED has those for gamma or beta.
_GAINS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("gamma", lambda gamma: gamma),
    ("1", np.ones_like),
    ("1 + gamma", lambda gamma: 1 + gamma),
    ("|gamma|", np.abs),
    ("gamma^2", np.square),
    ("-gamma", np.negative),
    ("1 / gamma", lambda gamma: 1 / gamma),
    ("exp(gamma)", np.exp),
    ("tanh(gamma)", np.tanh),
    ("the root of |gamma|", lambda gamma: np.sqrt(np.abs(gamma))),
    ("gamma rounded to integers", np.rint),
    ("max(gamma, 0)", lambda gamma: np.maximum(gamma, 0)),
)
_MOVED: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("{0} of the feature before", lambda value: np.roll(value, 1, axis=-1)),
    ("{0} of the feature after", lambda value: np.roll(value, -1, axis=-1)),
    ("{0} in reverse order", lambda value: value.reshape(-1)[::-1].reshape(value.shape)),
    ("{0} with its axes in reverse order", lambda value: value.T.reshape(value.shape)),
    ("{0} in reverse order along the last axis", lambda value: value[..., ::-1]),
    ("the first value of {0}", lambda value: np.full_like(value, value.reshape(-1)[0])),
    ("the last value of {0}", lambda value: np.full_like(value, value.reshape(-1)[-1])),
    ("the mean of {0}", lambda value: np.full_like(value, value.mean())),
)
_IS_MOVED = frozenset(words.format(name) for words, _ in _MOVED for name in ("gamma", "beta"))
#: Of two features, one is before and after the other, the first and the last: only more tell such places apart.
_LEAST_FEATURES = 3
#: Replacements for beta, as functions of beta and gamma.
_SHIFTS: tuple[tuple[str, Callable[[Array, Array], Array]], ...] = (
    ("beta", lambda beta, gamma: beta),
    ("0", lambda beta, gamma: np.zeros_like(beta)),
    ("-beta", lambda beta, gamma: -beta),
    ("gamma beta", lambda beta, gamma: gamma * beta),
    ("|gamma| beta", lambda beta, gamma: np.abs(gamma) * beta),
    ("gamma^2 beta", lambda beta, gamma: np.square(gamma) * beta),
    ("2 beta", lambda beta, gamma: 2 * beta),
    ("beta / 2", lambda beta, gamma: beta / 2),
    ("|beta|", lambda beta, gamma: np.abs(beta)),
    ("beta^2", lambda beta, gamma: np.square(beta)),
    ("max(beta, 0)", lambda beta, gamma: np.maximum(beta, 0)),
    ("1 + beta", lambda beta, gamma: 1 + beta),
)


def parameter_relations() -> Iterator[LinearRelation]:
    """y with something else in place of gamma, of beta, or of both."""
    gains = [*_GAINS, *((words.format("gamma"), change) for words, change in _MOVED)]
    moved = ((words.format("beta"), change) for words, change in _MOVED)
    shifts = [*_SHIFTS, *((words, lambda beta, gamma, change=change: change(beta)) for words, change in moved)]
    for gain, change in gains:
        for shift, other in shifts:
            if (gain, shift) == ("gamma", "beta"):
                continue
            replaced = [f"{new} in place of {old}" for new, old in ((gain, "gamma"), (shift, "beta")) if new != old]
            tells = _tells_places_apart if _IS_MOVED.intersection((gain, shift)) else None
            words = f"what the formula gives with {' and '.join(replaced)}"
            yield LinearRelation(words, partial(_with, change, other), tells=tells)
    words = "what the formula gives with gamma and beta of the first value of each group throughout"
    yield LinearRelation(words, _with_first_parameters)
    yield LinearRelation("what the formula gives with |gamma| + eps in place of gamma", _with_magnitude_and_eps)
    yield LinearRelation("gamma (xhat + beta)", lambda one: one.steps.gamma * (one.steps.xhat + one.steps.beta))
    yield LinearRelation("beta xhat + gamma", _exchanged)


def _tells_places_apart(one: ObservedResult) -> bool:
    return one.case.layout.parameters >= _LEAST_FEATURES


def _with(gain: Callable[[Array], Array], shift: Callable[[Array, Array], Array], one: ObservedResult) -> Array:
    steps, given = one.steps, one.steps.given("gamma")
    gamma = np.ones(1) if given is None else given
    moved = steps.parameter("beta", 0.0, lambda beta: shift(beta, gamma))
    return steps.parameter("gamma", 1.0, gain) * steps.xhat + moved


def _with_first_parameters(one: ObservedResult) -> Array:
    steps = one.steps
    gamma, beta = (steps.back(steps.rows(value)[:, :1]) for value in (steps.gamma, steps.beta))
    return gamma * steps.xhat + beta


def _with_magnitude_and_eps(one: ObservedResult) -> Array:
    steps = one.steps
    return steps.parameter("gamma", 1.0, lambda gamma: np.abs(gamma) + steps.eps) * steps.xhat + steps.beta


def _exchanged(one: ObservedResult) -> Array | None:
    gamma, beta = one.steps.given("gamma"), one.steps.given("beta")
    return None if gamma is None or beta is None else one.steps.beta * one.steps.xhat + one.steps.gamma
