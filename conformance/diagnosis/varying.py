"""A target of which repeated calls do not give the same: series of calls are all that tells what it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np

from ..cases.case import Case
from ..judging.calls import CALL_FAILED
from .answers import TELLING, Values
from .asking import Asking
from .candidates import Candidate, paired
from .series import Series, values_of

#: What is violated by a function of which repeated calls may give other results each time.
VARYING = ("CM-P2", "CM-P3")

#: Calls of a fresh case: what stays in all of them does not vary.
_STEADY = 16

#: Mistakes that agree with what stays, of which each is tried beside every mistake that varies.
_MOST = 4


@attrs.frozen(slots=False)
class Varying:
    """The series of one target."""

    asking: Asking
    #: The violated requirements.
    violated: Sequence[str]

    @cached_property
    def series(self) -> list[tuple[Series, bool]]:
        """What repeated calls of the target give, where that varies; each with whether it is gradients."""
        first = self.asking.settling
        if self.asking.subject.slow or first is None or not any(name in self.violated for name in VARYING):
            return []
        subject = self.asking.subject
        series = [
            (Series.of(subject, case, first, gradients=gradients), gradients)
            for case in self.asking.repeated()
            for gradients in self._ways
        ]
        return series if any(one.varies for one, _ in series) else []

    def alike(self, candidate: Candidate) -> bool:
        """Whether a candidate's repeated calls change as the target's do, from some call on."""
        first = self.asking.settling
        assert first is not None
        telling_first = sorted(self.series, key=lambda one: not one[0].varies)
        return all(
            series.is_within(
                Series.of(candidate.subject, series.case, first, gradients=gradients, within=series),
                self.asking.subject,
            )
            for series, gradients in telling_first
        )

    def pairs(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Each mistake that varies with another, which is wrong in what the target returns each time."""
        others = [one for one in candidates if not one.varies and self._agrees_with_what_stays(one)]
        for other in others if len(others) <= _MOST else ():
            for one in candidates:
                both = paired(one, other) if one.varies else None
                if both is not None and self.alike(both):
                    yield both

    @property
    def _ways(self) -> tuple[bool, ...]:
        return (False,) if self.asking.subject.forward_only else (False, True)

    @cached_property
    def _steady(self) -> list[tuple[Case, bool, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        """Cases, whether it is gradients, what a call of the target returned, and where others do but for roundings."""
        found = []
        for case in (*self.asking.repeated(), *(one.case for one in self.asking.fresh() if not one.derivative)):
            for gradients in self._ways:
                results = [self._call(case, gradients=gradients) for _ in range(_STEADY)]
                there = [one for one in results if one is not None]
                if there:
                    first, *later = there
                    names = set.intersection(*(set(one) for one in there))
                    stays = {name: self._stays(name, case, first[name], [one[name] for one in later]) for name in names}
                    found.append((case, gradients, first, stays))
        return found

    def _stays(self, name: str, case: Case, first: np.ndarray, later: Sequence[np.ndarray]) -> np.ndarray:
        slack = values_of(self.asking.subject, case, name, first).slack()
        return np.logical_and.reduce([_same(first, one) | (np.abs(first - one) <= slack) for one in later])

    def _call(self, case: Case, *, gradients: bool) -> Mapping[str, np.ndarray] | None:
        try:
            return self.asking.subject.pull(case) if gradients else self.asking.subject.outputs(case)
        except CALL_FAILED:
            return None

    def _agrees_with_what_stays(self, candidate: Candidate) -> bool:
        """Whether a candidate returns what each call of the target does, and something of that is wrong."""
        wrong = False
        for case, gradients, here, stays in self._steady:
            try:
                there = candidate.subject.pull(case) if gradients else candidate.subject.outputs(case)
            except CALL_FAILED:
                return False
            for name, steady in stays.items():
                if name not in there or there[name].shape != steady.shape:
                    return False
                own, others = (self._values(name, one[name], case, steady) for one in (here, there))
                if not own.agree(others):
                    return False
                wrong = wrong or others.off() >= TELLING
        return wrong

    def _values(self, name: str, got: np.ndarray, case: Case, steady: np.ndarray) -> Values:
        """A result as it is compared: right where it does not stay."""
        values = values_of(self.asking.subject, case, name, got)
        return attrs.evolve(values, got=np.where(steady, values.got, values.expected))


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one == other) | (np.isnan(one) & np.isnan(other))
