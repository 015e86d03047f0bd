"""Results that have another dtype than the input they belong to, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...cases.case import Case
from ...judging.subject import Subject
from ...judging.truth import owner_of
from ..answers import Values
from ..question import gradient_choices, results_if_any
from .observing import ObservedResult
from .pattern import listed
from .places import place_of_cases

#: The wrong dtype of each result of a case by its name; empty where the dtype is right.
_Dtypes = dict[str, str]


def wrong_dtypes(subject: Subject, formed: Sequence[Case], fresh: Sequence[Case]) -> str:
    """
    Which results have which wrong dtype, and in which cases; empty if each has that of its input.

    Results of which the same holds share a clause: "y and dx have dtype float64 where x has 3 axes".
    """
    seen, seen_fresh = ([(case, _dtypes(subject, case)) for case in cases] for cases in (formed, fresh))
    wrong = dict.fromkeys(found for _, dtypes in (*seen, *seen_fresh) for found in dtypes.items() if found[1])
    clauses: dict[str, list[str]] = {}
    for name, dtype in wrong:
        outcomes = [[*_outcomes(some, name, dtype)] for some in (seen, seen_fresh)]
        clauses.setdefault(f"dtype {dtype}{_where(subject.operator, *outcomes)}", []).append(name)
    return "; ".join(
        f"{listed(names)} {'has' if len(names) == 1 else 'have'} {told}" for told, names in clauses.items()
    )


def _dtypes(subject: Subject, case: Case) -> _Dtypes:
    found: _Dtypes = {}
    for gradients in gradient_choices(subject):
        for name, value in results_if_any(subject, case, gradients=gradients).items():
            owner = case.inputs[owner_of(name)]
            if owner is not None:
                found[name] = "" if value.dtype == owner.dtype else value.dtype.name
    return found


def _outcomes(seen: Sequence[tuple[Case, _Dtypes]], name: str, dtype: str) -> Iterator[ObservedResult]:
    """One number for each case that has the result: 1 if it has this wrong dtype."""
    for case, dtypes in seen:
        if name in dtypes:
            values = Values(np.array([float(dtypes[name] == dtype)]), np.zeros(1), np.zeros(1), 0.0)
            yield ObservedResult(case, name, values, np.inf)


def _where(operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> str:
    every = [bool(one.wrong.any()) for one in (*seen, *fresh)]
    if all(every):
        return ""
    place = place_of_cases(operator, seen, fresh)
    return f" in {sum(every)} of {len(every)} cases" if place is None else f" {place.words}"
