"""The checks of one subject, run case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import islice

import attrs

from ...adapters.frameworks import KNOWN
from ...spec.identifiers import is_common
from ..cases.case import Case
from ..cases.description import Description
from ..checks.registry import Check
from ..judging.library import Library, fitted
from ..judging.subject import Subject
from ..judging.verdicts import Verdict
from .selection import select_cases
from .tally import Tally, plain_call

#: Extra cases tried for a check that judged nothing: as many as a secondary binding gets at `standard`, and one
#: where each costs a compilation.
_EXTRA_CASES, _EXTRA_CASES_SLOW = 8, 1

#: Checks that failed with the plain call. A few may fail for a reason of their own.
_FAILED_CHECKS = 4

#: How many cases are observed in one request. Their results stay in memory until they are judged.
_CASES_IN_A_REQUEST = 16


@attrs.frozen
class Chosen:
    """The cases that run on a subject."""

    cases: Sequence[Description]
    #: All cases that the subject's binding can take, from which extra ones are chosen.
    whole: Sequence[Description]
    #: The cases on which gradients are taken.
    with_gradients: Collection[Description]

    @classmethod
    def of(
        cls,
        subject: Subject,
        checks: Sequence[Check],
        cases: Sequence[Description],
        library: Library,
        minimum: int | None,
        *,
        first: bool,
    ) -> Chosen:
        """
        Choose among the cases of a profile.

        With ``minimum`` only some of them: enough for every check to run on that many. ``first`` says that this is the
        first binding of its operator. Cases of 16-bit data beside float32 parameters are about 16 bits alone.
        """
        cases = [one for one in cases if library.format.narrow or not one.mixed]
        whole = list(dict.fromkeys(fit for one in cases if (fit := fitted(one, subject.binding)) is not None))
        if minimum is None:
            return cls(whole, whole, set(whole))
        own = subject.target.name not in KNOWN
        varied = own or (first and not subject.slow)  # a case of another shape costs seconds where it is compiled
        chosen = select_cases(whole, checks, minimum, varied=varied, first=first)
        if own or not subject.slow:
            return cls(chosen, whole, set(chosen))
        pulled = set(select_cases(chosen, [check for check in checks if check.gradient], minimum))
        return cls(chosen, whole, pulled | {one for one in chosen if "CM-S1" in one.requirements})


@attrs.define
class SubjectRun:
    """The checks of one subject in one mode, with what they have judged so far."""

    subject: Subject
    tallies: Sequence[Tally]
    library: Library
    #: On how many cases a check may make calls of its own; None if on all. Where calls are quick, this is about the
    #: checks of all operators (CM-), which make dozens in a case, and not about those of 16-bit data alone.
    most: int | None = None
    #: On how many cases with x of one rank a check may make dozens of calls; None if on all.
    most_of_a_rank: int | None = None
    #: Called after each case and each violation, with the share of the cases that is done.
    note: Callable[[float], object] = lambda share: None
    _share: float = 0.0
    #: Number of cases that ran, and of those whose plain call the target declines, by reason.
    cases_run: int = 0
    declined: Counter[str] = attrs.field(factory=Counter)

    def over(self, chosen: Chosen) -> None:
        """Run every check on the cases, until all are violated or nothing can be judged."""
        for place, description in enumerate(chosen.cases):
            if not self.subject.slow and place % _CASES_IN_A_REQUEST == 0:  # slow calls outweigh the requests
                self._prefetch(chosen.cases[place : place + _CASES_IN_A_REQUEST])
            reason = self.on(description, self.tallies, gradients=description in chosen.with_gradients)
            if reason is not None and not description.mixed:
                self.cases_run += 1
                self.declined.update([reason] if reason else [])
            self._share = (place + 1) / len(chosen.cases)
            self.note(self._share)
            if all(tally.violation is not None for tally in self.tallies):
                return
            if failed := failed_plain_call(self.tallies):
                for tally in self.tallies:
                    tally.blocked_by = tally.blocked_by or failed
                return
        self._try_extra_cases([*chosen.cases, *chosen.whole])

    def on(self, description: Description, tallies: Sequence[Tally], *, gradients: bool) -> str | None:
        """
        Run these checks on one case.

        Checks that make extra calls on many cases stop after ``most``; gradient checks run only where ``gradients`` is
        true.

        Return why the target declines the plain call; empty if it takes the call. Return None if no check needs the
        call, or if the call cannot be made because the target fixes a setting, size or parameter.
        """
        subject, case = self.subject, self.library.case(description)
        asking = [
            tally
            for tally in tallies
            if not (self._has_called_enough(tally, case) or (tally.check.gradient and not gradients))
            and tally.violation is None
            and tally.check.when(case)
        ]
        if not asking:
            return None
        declined = subject.declines(case)
        if declined:
            own = subject.cannot_vary(case) is not None
            for tally in asking:
                tally.note_declined(description, declined, own=own)
            return None if own else declined
        if self.most is not None:
            plain_call(subject, case, gradients=gradients)
        for tally in asking:
            tally.run(subject, case, description)
            if tally.violation is not None or tally.lost:
                self.note(self._share)
        if case.bulky:
            case.forget_truths()
        else:
            case.forget_intermediates()
        return ""

    def _has_called_enough(self, tally: Tally, case: Case) -> bool:
        of_a_rank = self.most_of_a_rank
        if of_a_rank is not None and tally.check.calls_often and tally.calls_by_rank[case.x.ndim] >= of_a_rank:
            return True
        if self.most is None or tally.check.calls_rarely or tally.cases_with_calls < self.most:
            return False
        return self.subject.slow or (is_common(tally.check.requirement) and not tally.check.is_of_16_bits)

    def _prefetch(self, descriptions: Sequence[Description]) -> None:
        """Send the plain calls of these cases to the worker in one request."""

        def is_needed(case: Case, *, gradient: bool = False) -> bool:
            """Whether any check still has to run on a case; with ``gradient``, any that needs its gradients."""
            return any(
                tally.violation is None and (tally.check.gradient or not gradient) and tally.check.when(case)
                for tally in self.tallies
            )

        self.subject.prefetch_cases(
            (case, is_needed(case, gradient=True)) for case in map(self.library.case, descriptions) if is_needed(case)
        )

    def _try_extra_cases(self, cases: Sequence[Description]) -> None:
        """Run each check that has judged nothing so far on extra cases, until one of them judges it."""
        most, self.most = self.most, None
        for tally in self.tallies:
            if not _judged_nothing(tally):
                continue
            left = (one for one in cases if one not in tally.tried)
            asking = (one for one in left if tally.check.when(self.library.case(one)))
            for description in islice(asking, _EXTRA_CASES_SLOW if self.subject.slow else _EXTRA_CASES):
                if not _judged_nothing(tally):
                    break
                self.on(description, [tally], gradients=True)
        self.most = most


def _judged_nothing(tally: Tally) -> bool:
    """Whether a check has judged nothing so far: it ran on no case, or only on cases that the target declines."""
    declining = tally.declined_calls and not (tally.judged or tally.refused or tally.error)
    return bool(declining) or tally.verdict is Verdict.NOT_EXERCISED


def failed_plain_call(tallies: Sequence[Tally]) -> str:
    """
    The requirement of plain calls that is violated, if nothing can be judged; empty otherwise.

    Further cases would only repeat that.
    """
    failed = [t.check.requirement for t in tallies if t.violation is not None]
    failed = [one for one in failed if one in ("CM-T1", "CM-T2")]
    judged = any(t.judged and t.violation is None for t in tallies if t.check.requirement[:4] != "CM-T")
    return failed[0] if failed and not judged and sum(bool(t.error) for t in tallies) >= _FAILED_CHECKS else ""
