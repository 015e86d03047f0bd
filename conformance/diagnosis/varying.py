"""A target whose repeated calls give different results: only a series of calls tells what it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np

from ...spec.errors import CALL_FAILED
from ..cases.case import Case
from .answers import CLEARLY_WRONG, Values
from .candidates import Candidate, paired
from .question import gradient_choices, results_if_any
from .question_maker import QuestionMaker
from .series import Series, values_of

#: Requirements violated by a function whose repeated calls may give other results each time.
VARYING = ("CM-P2", "CM-P3")

#: Calls of a fresh case. A value that stays the same in all of them does not vary.
_STEADY = 16

#: At most this many mistakes that agree with the steady values are each tried together with every mistake that varies.
_MOST_STEADY = 4


@attrs.frozen(slots=False)
class VaryingTarget:
    """The series of one target."""

    maker: QuestionMaker
    #: The violated requirements.
    violated: Sequence[str]

    @cached_property
    def series(self) -> list[Series]:
        """The results of repeated calls, if they vary."""
        first = self.maker.preceding_case
        if self.maker.subject.always_slow or first is None or not any(name in self.violated for name in VARYING):
            return []
        subject = self.maker.subject
        series = [
            Series.of(subject, case, first, gradients=gradients)
            for case in self.maker.cases_to_repeat()
            for gradients in gradient_choices(subject)
        ]
        return series if any(one.varies for one in series) else []

    def changes_like(self, candidate: Candidate) -> bool:
        """Whether a candidate's repeated calls change as the target's do, from some call on."""
        first = self.maker.preceding_case
        assert first is not None
        varying_first = sorted(self.series, key=lambda one: not one.varies)
        longer = (
            Series.of(candidate.subject, one.case, first, gradients=one.gradients, within=one) for one in varying_first
        )
        return all(one.is_within(other, self.maker.subject) for one, other in zip(varying_first, longer, strict=False))

    def pairs(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Each mistake that varies, with another that is wrong in what the target returns every time."""
        others = [one for one in candidates if not one.varies and self._agrees_with_what_stays(one)]
        for other in others if len(others) <= _MOST_STEADY else ():
            for one in candidates:
                both = paired(one, other) if one.varies else None
                if both is not None and self.changes_like(both):
                    yield both

    @cached_property
    def _steady(self) -> list[tuple[Case, bool, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        """
        For each case: whether these are gradients, the results of one call, and where later calls agree apart
        from rounding.
        """
        found, subject = [], self.maker.subject
        for case in (
            *self.maker.cases_to_repeat(),
            *(one.case for one in self.maker.new_fresh_questions() if not one.derivative),
        ):
            for gradients in gradient_choices(subject):
                results = [results_if_any(subject, case, gradients=gradients) for _ in range(_STEADY)]
                there = [one for one in results if one]
                if there:
                    first, *later = there
                    names = set.intersection(*(set(one) for one in there))
                    stays = {name: self._stays(name, case, first[name], [one[name] for one in later]) for name in names}
                    found.append((case, gradients, first, stays))
        return found

    def _stays(self, name: str, case: Case, first: np.ndarray, later: Sequence[np.ndarray]) -> np.ndarray:
        slack = values_of(self.maker.subject, case, name, first).slack()
        steady = np.logical_and.reduce([_same_value(first, one) | (np.abs(first - one) <= slack) for one in later])
        # Where roundings may be large, a value that changes from call to call may seem to stay.
        return steady & (CLEARLY_WRONG * slack <= np.abs(first).max(initial=0.0))

    def _agrees_with_what_stays(self, candidate: Candidate) -> bool:
        """Whether a candidate returns the steady values of the target, and some of them are wrong."""
        wrong = False
        for case, gradients, here, stays in self._steady:
            try:
                there = candidate.subject.results(case, gradients=gradients)
            except CALL_FAILED:
                return False
            for name, steady in stays.items():
                if name not in there or there[name].shape != steady.shape:
                    return False
                own, others = (self._values(name, one[name], case, steady) for one in (here, there))
                if not own.agrees(others):
                    return False
                wrong = wrong or others.worst_error() >= CLEARLY_WRONG
        return wrong

    def _values(self, name: str, got: np.ndarray, case: Case, steady: np.ndarray) -> Values:
        """A result for comparison: values that do not stay are replaced by right ones."""
        values = values_of(self.maker.subject, case, name, got)
        return attrs.evolve(values, got=np.where(steady, values.got, values.expected))


def _same_value(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one == other) | (np.isnan(one) & np.isnan(other))
