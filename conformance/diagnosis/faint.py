"""Mistakes that show by little, as many do in 16 bits: what is wrong is told by many values that are wrong alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..cases.description import Description
from .answers import TELLING, Answer, Values
from .question import Question

#: So many values beyond the envelope have to be wrong alike, on so many cases: one that is off by an ulp or two is so
#: by accident in every third function, and sixteen are in one of 3^16.
_VALUES, _CASES = 16, 3


def wrong_alike(answers: Iterable[tuple[Question, Answer, Answer]]) -> bool:
    """
    Whether a candidate's answers, each after the target's, are wrong where these are and by as much.

    All that one of the two has beyond the envelope counts, in units of that: the two have to be as near to each other,
    in the square mean, as an agreement is that tells something of a mistake which shows by much. Several questions on
    one case are about the same values.
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
    return sum(counts) >= _VALUES and len(counts) >= _CASES and apart * TELLING**2 <= wrong


def _compared(here: Answer, there: Answer) -> Iterator[tuple[Values, Values]]:
    """The values of two answers that are about the same."""
    if here.marks and there.marks:
        for one, other in zip(here.marks, there.marks, strict=False):
            if one.values is not None and other.values is not None:
                yield one.values, other.values
    else:
        yield from ((value, there.values[name]) for name, value in here.values.items() if name in there.values)


def _errors(here: Values, there: Values) -> tuple[np.ndarray, np.ndarray]:
    """The errors of both in envelopes, where one of them is beyond it."""
    if here.got.shape != there.got.shape:
        return np.ones(1), np.full(1, np.inf)
    with np.errstate(all="ignore"):
        errors, others = ((one.got - one.expected) / one.envelope for one in (here, there))
    beyond = (here.beyond | there.beyond) & np.isfinite(errors) & np.isfinite(others)
    return errors[beyond], others[beyond]
