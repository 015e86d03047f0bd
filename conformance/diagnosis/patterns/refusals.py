"""Refusals: what the valid calls have in common that raise, or return a wrong shape."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ....spec.errors import BadOutput, TargetRaised
from ...cases.case import Case
from ..answers import Values
from .observing import ObservedResult, Observer
from .places import place_of_cases


def refusal(observer: Observer, operator: str, formed: Sequence[Case], fresh: Sequence[Case]) -> str:
    """How a call fails, and on which cases; empty if none fails, or if nothing is known about it."""
    for derivative in (False, True):
        before, after = (_outcomes(observer, cases, derivative=derivative) for cases in (formed, fresh))
        failing = [one for one in (*before, *after) if one.wrong.any()]
        if not failing:
            continue
        words = _words(observer.failure(failing[0].case, derivative=derivative), derivative=derivative)
        place = place_of_cases(operator, before, after)
        if place is not None:
            return f"{words} {place.words}"
        if len(failing) == len(before) + len(after):
            return f"{words}, whatever is given"
        return f"{words} in {len(failing)} of {len(before) + len(after)} cases"
    return ""


def _outcomes(observer: Observer, cases: Sequence[Case], *, derivative: bool) -> list[ObservedResult]:
    """One number for each case: 1 if the call fails."""
    found = []
    for case in cases:
        answer = observer.answer(case, derivative=derivative)
        if answer is not None:
            got = np.array([float(bool(answer.words))])
            values = Values(got, np.zeros(1), np.zeros(1), 0.0)
            found.append(ObservedResult(case, "the call", values, np.inf))
    return found


def _words(failure: Exception | None, *, derivative: bool) -> str:
    subject = "taking gradients" if derivative else "the call"
    if isinstance(failure, TargetRaised):
        return f"{subject} raises {_shortened(str(failure))}"
    if isinstance(failure, BadOutput):
        # Leave out the shapes, which are those of one case.
        told = re.sub(r" in place of .*", "", _shortened(str(failure)))
        return re.sub(r"has shape \(.*\)", "has a wrong shape", told)
    return f"{subject} fails"


def _shortened(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= 120 else f"{line[:117]}..."
