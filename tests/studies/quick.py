"""Outcomes of studies in their quick form, each computed once in a process."""

from __future__ import annotations

import functools
import re

import numpy as np

from normspec.studies.catalogue import STUDIES
from normspec.studies.operators import Operators
from normspec.studies.study import Outcome, Scale, run
from normspec.studies.written import document


@functools.cache
def outcome(name: str, target: str = "numpy") -> Outcome:
    """The study of this name on a target."""
    return run(STUDIES[name], Operators.of(target), Scale(quick=True))


def same_numbers(name: str, target: str) -> bool:
    """Whether every number that is written of a target is that of NumPy, to the last digit."""
    ours, theirs = document(outcome(name)), document(outcome(name, target))
    return all(ours[key] == theirs[key] for key in ("facts", "panels", "verdict", "conditions", "because"))


def same_conclusion(name: str, target: str) -> bool:
    """
    Whether verdict, conditions and reason on a target agree with those on NumPy.

    The numbers in them have two digits. Rounding may move the last digit, so they may differ by a tenth at most.
    """
    ours, theirs = outcome(name).judgement, outcome(name, target).judgement
    return ours.verdict is theirs.verdict and all(
        _NUMBER.split(here) == _NUMBER.split(there) and np.allclose(_numbers(here), _numbers(there), rtol=0.1, atol=0.0)
        for here, there in ((ours.because, theirs.because), (ours.conditions, theirs.conditions))
    )


#: A number in a sentence.
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def _numbers(sentence: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(sentence)]
