"""Mistakes that show only slightly, as many do in 16 bits: many values that are wrong alike give them away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..cases.description import Description
from .answers import CLEARLY_WRONG, Answer, Values
from .question import Question

#: Values beyond the envelope that have to be wrong alike, and the cases they come from. One value is off by an ulp or
#: two by accident in every third function, and sixteen values in one of 3^16.
_MIN_VALUES, _MIN_CASES = 16, 3


def has_same_small_errors(answers: Iterable[tuple[Question, Answer, Answer]]) -> bool:
    """
    Whether a candidate is wrong where the target is, and by as much, given the answers of both.

    Each error beyond the envelope, of either one, counts in units of the envelope. Their difference in the square mean
    has to be as small as an agreement about a large mistake requires. Several questions on one case are about the same
    values.
    """
    apart = wrong = 0.0
    values: dict[Description, int] = {}
    for question, here, there in answers:
        found = [_errors(*two) for two in _compared(here, there)]
        count = sum(len(errors) for errors, _ in found)
        values[question.description] = max(values.get(question.description, 0), count)
        apart += sum(float(np.square(errors - others).sum()) for errors, others in found)
        wrong += sum(float(np.square(errors).sum()) for errors, _ in found)
    counts = [count for count in values.values() if count]
    return sum(counts) >= _MIN_VALUES and len(counts) >= _MIN_CASES and apart * CLEARLY_WRONG**2 <= wrong


def _compared(here: Answer, there: Answer) -> Iterator[tuple[Values, Values]]:
    """The pairs of values in two answers that are about the same thing."""
    if here.comparisons and there.comparisons:
        for one, other in zip(here.comparisons, there.comparisons, strict=False):
            if one.values is not None and other.values is not None:
                yield one.values, other.values
    else:
        yield from ((value, there.values[name]) for name, value in here.values.items() if name in there.values)


def _errors(here: Values, there: Values) -> tuple[np.ndarray, np.ndarray]:
    """The errors of both in units of the envelope, where at least one is beyond it."""
    if here.got.shape != there.got.shape:
        return np.ones(1), np.full(1, np.inf)
    errors, others = ((one.got - one.expected) / one.envelope for one in (here, there))
    beyond = (here.outside_envelope | there.outside_envelope) & np.isfinite(errors) & np.isfinite(others)
    return errors[beyond], others[beyond]
