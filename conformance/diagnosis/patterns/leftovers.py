"""Leftovers: results that were added to what an earlier call left in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ...cases.case import Case
from ...checks.later_calls import different_values
from ...judging.subject import Subject
from ..answers import CLEARLY_WRONG, Values
from ..question import gradient_choices, results_if_any
from ..series import values_of
from .formula_steps import Array
from .pattern import with_verb

#: Pairs of calls, and how many of the calls must have an earlier result in them.
_PAIRS, _MIN_EXPLAINED = 4, 3
#: How many cases must show it.
_MIN_CASES = 2
#: The share of the values of a result that must show it: an allocator writes a few bytes into memory that is free.
_MOST = 0.875


def leftovers_in_words(subject: Subject, cases: Sequence[Case]) -> str:
    """Which results have an earlier call's result added, in shapes that no call had before; empty if none has."""
    found = [names for case in cases if (names := _with_leftovers(subject, case))]
    if len(found) < _MIN_CASES:
        return ""
    names = sorted({name for some in found for name in some})
    values, they = ("value", "it is") if len(names) == 1 else ("values", "they are")
    return (
        f"{with_verb(names)} the right {values} plus what an earlier call returned, as if the memory that {they} added"
        " to were not cleared"
    )


def _with_leftovers(subject: Subject, case: Case) -> list[str]:
    """The results of which more than half of the wrong ones are right plus an earlier result."""
    names: list[str] = []
    for gradients in gradient_choices(subject):
        earlier: list[Mapping[str, Array]] = []
        wrong = Counter[str]()
        beyond: dict[str, list[Array]] = {}  # what explained results have beyond the right ones
        for one in (case, different_values(case)) * _PAIRS:
            results = results_if_any(subject, one, gradients=gradients)
            for name, got in results.items():
                values = values_of(subject, one, name, got)
                if not np.isfinite(got).all() or not values.outside_envelope.any():
                    continue
                wrong[name] += 1
                if any(_is_left_over(values, before) for some in earlier for before in some.values()):
                    beyond.setdefault(name, []).append(values.got - values.expected)
            earlier.append(results)
        names += [
            name
            for name, explained in beyond.items()
            if len(explained) >= _MIN_EXPLAINED and 2 * len(explained) > wrong[name] and _changes(explained)
        ]
    return names


def _is_left_over(values: Values, before: Array) -> bool:
    """Whether an earlier result is what the values have beyond the right ones."""
    if before.shape != values.got.shape:
        return False
    beyond, slack = values.got - values.expected, values.slack()
    same = (np.abs(beyond - before) <= slack) & (np.abs(beyond) > CLEARLY_WRONG * slack)
    return bool(same.mean() >= _MOST)


def _changes(beyond: Sequence[Array]) -> bool:
    """Whether it is not the same each time: a constant may be all that any call returns."""
    return any(not np.allclose(beyond[0], one) for one in beyond[1:])
