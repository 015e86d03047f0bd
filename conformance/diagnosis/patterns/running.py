"""Running statistics: towards what they moved, and by how much of the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .facts import Facts
from .numbers import written
from .observing import Seen
from .relation import Relation, right, said
from .terms import plus

Array = np.ndarray

_STATISTICS: dict[str, tuple[tuple[str, Callable[[Facts], Array]], ...]] = {
    "new_running_mean": (
        ("the mean of the batch", lambda facts: facts.data.mean(axis=1)),
        ("the sum of the batch", lambda facts: facts.data.sum(axis=1)),
        ("the median of the batch", lambda facts: np.median(facts.data, axis=1)),
        ("the variance of the batch", lambda facts: facts.data.var(axis=1)),
        ("the mean of all channels", lambda facts: np.full(facts.count, facts.data.mean())),
        ("minus the mean of the batch", lambda facts: -facts.data.mean(axis=1)),
        ("zero", lambda facts: np.zeros(facts.count)),
    ),
    "new_running_var": (
        ("the variance of the batch", lambda facts: facts.data.var(axis=1)),
        (
            "the variance of the batch with the divisor n - 1",
            lambda facts: facts.data.var(axis=1) * facts.n / max(facts.n - 1, 1),
        ),
        (
            "the variance of the batch with the divisor n - 1, 0/0 for one value",
            lambda facts: facts.data.var(axis=1) * np.float64(facts.n) / np.float64(facts.n - 1),
        ),
        (
            "the variance of the batch with the divisor n + 1",
            lambda facts: facts.data.var(axis=1) * facts.n / (facts.n + 1),
        ),
        ("the deviation of the batch", lambda facts: facts.data.std(axis=1)),
        ("var + eps of the batch", lambda facts: facts.data.var(axis=1) + facts.eps),
        ("the mean square of the batch", lambda facts: np.square(facts.data).mean(axis=1)),
        ("the sum of the squared deviations", lambda facts: facts.data.var(axis=1) * facts.n),
        ("1 / (var + eps) of the batch", lambda facts: 1 / (facts.data.var(axis=1) + facts.eps)),
        ("1 / sqrt(var + eps) of the batch", lambda facts: 1 / np.sqrt(facts.data.var(axis=1) + facts.eps)),
        ("the mean of the batch", lambda facts: facts.data.mean(axis=1)),
        ("zero", lambda facts: np.zeros(facts.count)),
    ),
}
_WEIGHTS: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("momentum", lambda m: m),
    ("1 - momentum", lambda m: 1 - m),
    ("momentum^2", lambda m: m * m),
    ("the root of momentum", lambda m: m**0.5),
    ("1 - (1 - momentum)^2", lambda m: m * (2 - m)),
)


def _moved(statistic: Callable[[Facts], Array], weight: Callable[[float], float]) -> Callable[[Seen], Array]:
    def made(one: Seen) -> Array:
        if not one.facts.training:
            return one.expected
        w, old = weight(float(one.case.settings["momentum"])), _old(one)
        return (1 - w) * old + w * statistic(one.facts)

    return made


def _rounded(one: Seen) -> Array:
    """The rounding of a channel's mean. A deviation shows all of it where the values of the channel are alike."""
    return 8 * one.values.unit * np.abs(one.facts.data).max(axis=1)


def _old(one: Seen) -> Array:
    value = one.facts.given(one.name.removeprefix("new_"))
    assert value is not None
    return value


def running_relations(name: str) -> Iterator[Relation]:
    """Wrong forms of a running statistic, the plainest first."""
    if name not in _STATISTICS:
        return
    old = name.removeprefix("new_")
    yield Relation(said(f"{old} as it was given"), _old)
    for weighed, weight in _WEIGHTS:
        for words, statistic in _STATISTICS[name]:
            told = f"(1 - w) times {old} plus w times {words}, w being {weighed}"
            yield Relation(said(told), _moved(statistic, weight), rounded=_rounded)
    for words, statistic in _STATISTICS[name]:

        def slope(one: Seen, statistic: Callable[[Facts], Array] = statistic) -> Array | None:
            return statistic(one.facts) - _old(one) if one.facts.training else np.zeros(one.got.shape)

        yield Relation(
            lambda number, words=words: (
                f"{old} moved towards {words} by {written(number)} of the way, whatever momentum is"
            ),
            _old,
            slope,
            np.inf,
        )
    for words, statistic in _STATISTICS[name][:1]:

        def added(one: Seen, statistic: Callable[[Facts], Array] = statistic) -> Array | None:
            m = float(one.case.settings["momentum"])
            return _old(one) + m * statistic(one.facts) if one.facts.training else one.expected

        yield Relation(said(f"{old} plus momentum times {words}, without the factor 1 - momentum"), added)
    yield Relation(plus("eps"), right, lambda one: np.full(one.got.shape, one.facts.eps * one.facts.training))
    words, statistic = _STATISTICS[name][0]
    yield Relation(said(f"{old} plus momentum times the sign of {words} minus {old}"), _stepped(statistic))


def _stepped(statistic: Callable[[Facts], Array]) -> Callable[[Seen], Array]:
    def made(one: Seen) -> Array:
        if not one.facts.training:
            return one.expected
        momentum, old = float(one.case.settings["momentum"]), _old(one)
        return old + momentum * np.sign(statistic(one.facts) - old)

    return made
