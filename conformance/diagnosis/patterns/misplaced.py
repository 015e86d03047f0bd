"""Misplaced values: parameters of another channel in y, and sums whose terms went to another channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ....spec.operators import Groups
from .formula_steps import Array
from .observing import ObservedResult

#: Wrong results that must tell it.
_MIN_TELLING = 5
#: A value tells it if it is as described by chance less often than this.
_BY_CHANCE = 0.01
#: Pairs of a wrong value and a place that are compared in one case: more take memory, and smaller cases tell it too.
_MOST_PAIRS = 1 << 20


def misplaced_in_words(seen: Sequence[ObservedResult]) -> str:
    """What was misplaced, if that explains every wrong result; empty if it does not, or too few can be told."""
    if not seen or seen[0].case.record.composed:
        return ""
    place = "feature" if seen[0].case.record.groups is Groups.TRAILING else "channel"
    if seen[0].name in ("dgamma", "dbeta"):
        words = f"the values add up to the right total, as if terms of the sums went to another {place}"
        return words if _holds(_adds_up, seen) else ""
    for names in (["gamma"], ["beta"], ["gamma", "beta"]) if seen[0].name == "y" else ():
        if _holds(lambda one, names=names: _has_another(one, names), seen):
            return f"each wrong value has {' and '.join(names)} of another {place}"
    return ""


def _holds(explains: Callable[[ObservedResult], bool | None], seen: Iterable[ObservedResult]) -> bool:
    told = [found for one in seen if one.wrong.any() and (found := explains(one)) is not None]
    return len(told) >= _MIN_TELLING and all(told)


def _adds_up(one: ObservedResult) -> bool | None:
    """Whether the values have the right sum; None if that may be chance."""
    off, slack = (one.got - one.expected).reshape(-1), float(one.slack.sum())
    if not one.judged.all() or not slack < _BY_CHANCE * float(np.abs(off).sum()):
        return None
    return abs(float(off.sum())) <= slack


def _has_another(one: ObservedResult, names: Sequence[str]) -> bool | None:
    """Whether each wrong y has those of these parameters that are given of one other place; None if by chance."""
    given = {name: value for name in names if (value := one.steps.given(name)) is not None}
    if not given:
        return False  # it is wrong without them
    wrong = one.wrong
    if np.count_nonzero(wrong) * max(value.size for value in given.values()) > _MOST_PAIRS:
        return None
    gamma, beta = (_candidates(given, name, own, wrong) for name, own in _own(one))
    each = gamma * one.steps.xhat[wrong][:, None] + beta
    got, slack = one.got[wrong], one.slack[wrong]
    by_chance = each.shape[1] * 2 * slack / np.ptp(each, axis=1)
    tells = by_chance < _BY_CHANCE
    if not tells.any():
        return None
    return bool((np.abs(each - got[:, None]).min(axis=1) <= slack)[tells].all())


def _own(one: ObservedResult) -> list[tuple[str, Array]]:
    """gamma and beta as each value of y should have them."""
    shape = one.got.shape
    return [(name, np.broadcast_to(getattr(one.steps, name), shape)) for name in ("gamma", "beta")]


def _candidates(given: dict[str, Array], name: str, own: Array, wrong: Array) -> Array:
    """All that a parameter may be for each wrong value: what it should be, or the values of every place."""
    if name not in given:
        return own[wrong][:, None]
    return given[name].reshape(1, -1)
