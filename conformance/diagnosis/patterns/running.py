"""Running statistics: towards what they moved, and by how much of the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .formula_steps import Array, FormulaSteps
from .numbers import written
from .observing import ObservedResult
from .relation import LinearRelation, right
from .terms import plus


def _over(steps: FormulaSteps, divisor: int) -> Array:
    """The variance of the batch with another divisor."""
    return steps.data.var(axis=1) * steps.n / divisor


_STATISTICS: dict[str, tuple[tuple[str, Callable[[FormulaSteps], Array]], ...]] = {
    "new_running_mean": (
        ("the mean of the batch", lambda steps: steps.data.mean(axis=1)),
        ("the sum of the batch", lambda steps: steps.data.sum(axis=1)),
        ("the median of the batch", lambda steps: np.median(steps.data, axis=1)),
        ("the variance of the batch", lambda steps: steps.data.var(axis=1)),
        ("the mean of all channels", lambda steps: np.full(steps.count, steps.data.mean())),
        ("minus the mean of the batch", lambda steps: -steps.data.mean(axis=1)),
        ("zero", lambda steps: np.zeros(steps.count)),
    ),
    "new_running_var": (
        ("the variance of the batch", lambda steps: steps.data.var(axis=1)),
        ("the variance of the batch with the divisor n - 1", lambda steps: _over(steps, max(steps.n - 1, 1))),
        (
            "the variance of the batch with the divisor n - 1, 0/0 for one value",
            lambda steps: _over(steps, steps.n - 1),
        ),
        ("the variance of the batch with the divisor n + 1", lambda steps: _over(steps, steps.n + 1)),
        ("the deviation of the batch", lambda steps: steps.data.std(axis=1)),
        ("var + eps of the batch", lambda steps: steps.data.var(axis=1) + steps.eps),
        ("the mean square of the batch", lambda steps: np.square(steps.data).mean(axis=1)),
        ("the sum of the squared deviations", lambda steps: _over(steps, 1)),
        ("1 / (var + eps) of the batch", lambda steps: 1 / (steps.data.var(axis=1) + steps.eps)),
        ("1 / sqrt(var + eps) of the batch", lambda steps: 1 / np.sqrt(steps.data.var(axis=1) + steps.eps)),
        ("the mean of the batch", lambda steps: steps.data.mean(axis=1)),
        ("zero", lambda steps: np.zeros(steps.count)),
    ),
}
_WEIGHTS: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("momentum", lambda m: m),
    ("1 - momentum", lambda m: 1 - m),
    ("momentum^2", lambda m: m * m),
    ("the root of momentum", lambda m: m**0.5),
    ("1 - (1 - momentum)^2", lambda m: m * (2 - m)),
)


def _updated(
    statistic: Callable[[FormulaSteps], Array], rule: Callable[[Array, Array, float], Array], one: ObservedResult
) -> Array:
    """The new value by a rule: a function of the old value, a statistic of the batch, and momentum."""
    if not one.steps.training:
        return one.expected
    return rule(_old(one), statistic(one.steps), float(one.case.settings["momentum"]))


def _weighed(weight: Callable[[float], float], before: Array, now: Array, momentum: float) -> Array:
    return (1 - weight(momentum)) * before + weight(momentum) * now


def _change(statistic: Callable[[FormulaSteps], Array], one: ObservedResult) -> Array:
    """From the old value to a statistic of the batch."""
    return statistic(one.steps) - _old(one) if one.steps.training else np.zeros(one.got.shape)


def _rounded(one: ObservedResult) -> Array:
    """The rounding of a channel's mean. A deviation shows all of it where the values of the channel are alike."""
    return 8 * one.values.unit * np.abs(one.steps.data).max(axis=1)


def _old(one: ObservedResult) -> Array:
    value = one.steps.given(one.name.removeprefix("new_"))
    assert value is not None
    return value


def _of_inference(one: ObservedResult) -> Array | None:
    """y of the other mode; None for an operator without modes."""
    if not one.case.record.has_modes:
        return None
    return one.expected if not one.steps.training else FormulaSteps(one.case.replace(training=False)).normalised


def running_relations(name: str) -> Iterator[LinearRelation]:
    """Wrong forms of a running statistic, the plainest first; and y with the running statistics in training."""
    if name == "y":
        yield LinearRelation("what inference gives, with the running statistics", _of_inference)
    if name not in _STATISTICS:
        return
    old = name.removeprefix("new_")
    for weighed, weight in _WEIGHTS:
        for words, statistic in _STATISTICS[name]:
            words_of_step = f"(1 - w) times {old} plus w times {words}, w being {weighed}"
            made = partial(_updated, statistic, partial(_weighed, weight))
            yield LinearRelation(words_of_step, made, rounded=_rounded)
    for words, statistic in _STATISTICS[name]:
        yield LinearRelation(
            lambda number, words=words: (
                f"{old} moved towards {words} by {written(number)} of the way, whatever momentum is"
            ),
            _old,
            partial(_change, statistic),
            np.inf,
        )
    words, right_one = _STATISTICS[name][0]
    yield LinearRelation(
        f"{old} plus momentum times {words}, without the factor 1 - momentum",
        partial(_updated, right_one, lambda before, now, m: before + m * now),
    )
    yield LinearRelation(
        partial(plus, "eps"), right, lambda one: np.full(one.got.shape, one.steps.eps * one.steps.training)
    )
    yield LinearRelation(
        f"{old} plus momentum times the sign of {words} minus {old}",
        partial(_updated, right_one, lambda before, now, m: before + m * np.sign(now - before)),
    )
