"""Outcomes of studies in their quick form, each computed once in a process."""

from __future__ import annotations

import functools

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
    """Whether verdict, conditions and reason on a target are those on NumPy, with the digits that they tell."""
    ours, theirs = outcome(name).judgement, outcome(name, target).judgement
    return ours == theirs
