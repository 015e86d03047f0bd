"""The findings about one requirement so far, and the verdict that follows from them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable

import attrs

from ...spec import Level, requirement
from ...spec.errors import (
    CALL_FAILED,
    BadOutput,
    CannotVary,
    MissingGradient,
    NormspecError,
    TakesNoPart,
    TargetLost,
    TargetRaised,
    Unsupported,
)
from ..cases.case import Case
from ..cases.description import Description
from ..checks.registry import Check
from ..judging.defects import trace, words
from ..judging.findings import Finding
from ..judging.known import failure_shown
from ..judging.subject import Subject
from ..judging.verdicts import Result, Upstream, Verdict
from ..results.ratios import bin_of


@attrs.define
class Tally:
    """One check of one subject, added up case by case."""

    check: Check
    #: The level of the requirement: MUST or SHOULD.
    level: Level = attrs.Factory(lambda self: requirement(self.check.requirement).level, takes_self=True)
    #: Number of cases judged, and the worst error / envelope on them.
    judged: int = 0
    ratio: float | None = None
    #: Number of ratios in each bin (ratios.py).
    ratios: Counter[int] = attrs.field(factory=Counter)
    #: The worst ratio by kind of data (cases/regimes.py); a case with groups of several kinds counts for each.
    kinds: dict[str, float] = attrs.field(factory=dict)
    #: The first violation, and the case that it was found on.
    violation: Finding | None = None
    description: Description | None = None
    #: The first finding that a known violation of the binding covers.
    known: Finding | None = None
    #: Declared conventions that some comparison needed to pass.
    deviates: set[str] = attrs.field(factory=set)
    #: Why nothing could be judged: the target lacks it, or raised.
    unsupported: str = ""
    #: Number of cases by the reason why the target declined a call or lacked a derivative.
    declined: Counter[str] = attrs.field(factory=Counter)
    #: Number of cases whose plain call the target declined.
    declined_calls: int = 0
    error: str = ""
    #: The traceback of a defect of normspec, if ``error`` is one.
    defect: str = ""
    #: The first requirement whose violation made a case impossible to judge.
    blocked_by: str = ""
    #: Whether the target refused an optional feature on a case: a derivative, or float32 parameters.
    refused: bool = False
    #: Whether the target was lost on a case: its process ended, or was stopped at a limit.
    lost: bool = False
    #: The cases that the check ran on, or that the target declined.
    tried: set[Description] = attrs.field(factory=set)
    #: Number of cases on which the check made extra calls, besides the plain one and its gradients, by the rank of x.
    calls_by_rank: Counter[int] = attrs.field(factory=Counter)

    def run(self, subject: Subject, case: Case, description: Description) -> None:
        """Run the check on one case and add up its findings."""
        before = subject.calls
        self.tried.add(description)
        try:
            self._add_up(subject, case, description)
        finally:
            self.calls_by_rank[case.x.ndim] += subject.calls > before

    @property
    def cases_with_calls(self) -> int:
        """Number of cases on which the check made extra calls."""
        return self.calls_by_rank.total()

    def note_declined(self, description: Description, reason: str, *, own: bool = False) -> None:
        """
        Note that the target declines the plain call of a case, so that nothing can be judged on it.

        With ``own``, such a call cannot be made at all, because the target fixes a setting, size or parameter.
        """
        self.tried.add(description)
        self.declined_calls += 1
        self.note_lacking(reason, own=own)

    def note_lacking(self, reason: str, *, own: bool = False) -> None:
        """
        Note that the target lacks something that the check needs on a case.

        With ``own`` the case is not counted: the settings that a target fixes are reported once, with the target.
        """
        if not own:
            self.declined[reason] += 1
        self.unsupported = self.unsupported or reason

    def _add_up(self, subject: Subject, case: Case, description: Description) -> None:
        counted = False
        for finding in findings(self.check, subject, case, self):
            if not finding.judged:
                self.blocked_by = self.blocked_by or finding.blocked_by
                continue
            self.judged += not counted
            counted = True
            if finding.ratio is not None:
                self.ratio = finding.ratio if self.ratio is None else max(self.ratio, finding.ratio)
                self.ratios[bin_of(finding.ratio)] += 1
                for kind, _ in description.groups:
                    self.kinds[kind] = max(self.kinds.get(kind, 0.0), finding.ratio)
            self.deviates.update(finding.deviates)
            if finding.known and self.known is None:
                self.known = finding
            if finding.violated:
                self.violation, self.description = finding, description
                return

    def note_defect(self, error: Exception) -> None:
        """Note a defect of normspec, which makes the other findings of this check meaningless."""
        if not self.defect:
            self.error, self.defect = words(error), trace(error)

    @property
    def verdict(self) -> Verdict:
        if self.violation is not None:
            return Verdict.FAIL if self.level is Level.MUST else Verdict.ADVICE
        if self.error:  # other cases say nothing about the case that raised
            return Verdict.ERROR
        if self.refused:
            return Verdict.UNSUPPORTED  # a derivative that exists only on the plainest cases is not supported
        if self.judged:
            return Verdict.DEVIATES if self.deviates or self.known is not None else Verdict.PASS
        if self.unsupported:
            return Verdict.UNSUPPORTED
        return Verdict.NOT_EXERCISED

    def result(
        self,
        subject: Subject,
        shown: Finding | None,
        *,
        reason: str,
        violated_on: Description | None,
        upstream: Upstream | None,
    ) -> Result:
        """The result that reports this tally, with the finding to be shown and the reason for the verdict."""
        verdict = self.verdict
        # The case that is shown was made plainer, and its error may be larger by that.
        ratio = max((one for one in (self.ratio, shown and shown.ratio) if one is not None), default=None)
        return Result(
            target=subject.target.name,
            binding=subject.binding.name,
            op=subject.operator,
            requirement=self.check.requirement,
            level=self.level.value,
            dtype=subject.dtype,
            device=subject.device,
            mode="eager",
            verdict=verdict,
            # If the violation is not an error of a magnitude, errors within the envelope say nothing about it.
            ratio=None if verdict.is_violation and (ratio or 0.0) <= 1 else ratio,
            ratios=dict(self.ratios),
            kinds=dict(self.kinds),
            cases=self.judged,
            declined=dict(self.declined),
            reason=reason,
            counterexample=None if shown is None else shown.counterexample(),
            violated_on=violated_on,
            traceback=self.defect,
            known=subject.known_violations.deviations(self.check.requirement),
            upstream=upstream,
        )


def stays_violated(checks: Iterable[Check], subject: Subject, case: Case, description: Description) -> bool:
    """Whether one of these checks is violated on a case, or cannot be judged there."""
    for check in checks:
        if check.when(case):
            tally = Tally(check)
            tally.run(subject, case, description)
            if tally.violation is not None or tally.error:
                return True
    return False


def findings(
    check: Check, subject: Subject, case: Case, tally: Tally | None = None, *, whole: bool = False
) -> list[Finding]:
    """
    Run a check on a case up to the first violation.

    An exception of the target becomes a finding or a note in the tally, depending on the check. With ``whole``, the
    check also continues after a violation.
    """
    found: list[Finding] = []
    noted = Tally(check) if tally is None else tally

    def add(finding: Finding) -> Finding:
        if finding.violated:
            finding = attrs.evolve(finding, checked_case=case, calls=tuple(subject.log))
        found.append(subject.known_violations.without_known(check.requirement, finding))
        return found[-1]

    subject.target.begin()
    subject.log.clear()
    try:
        if check.gradient:
            subject.require_gradients()
        for one in check.body(subject, case):
            finding = add(one)
            if finding.violated and finding.judged and not whole:
                break
    except Unsupported as lacking:
        noted.note_lacking(str(lacking), own=isinstance(lacking, CannotVary))
        # A missing part or a fixed setting leaves the values judged; a missing derivative does not.
        spared = isinstance(lacking, (TakesNoPart, CannotVary))
        noted.refused |= check.raising == "unsupported" and not spared and not found
    except TargetLost as lost:
        on = f", on x of shape {(subject.last_case or case).x.shape}" if lost.called else ""
        noted.error, noted.lost = noted.error if noted.lost else f"{lost}{on}", True
    except (TargetRaised, BadOutput) as failure:
        _add_failure(failure, subject, case, noted, add)
    except NormspecError:  # the user's own mistake, such as a NAME_accepts that returns False
        raise
    except Exception as error:  # a defect of normspec: exceptions of a target are caught above
        if tally is None:
            raise
        tally.note_defect(error)
    return found


def _add_failure(
    failure: TargetRaised | BadOutput, subject: Subject, case: Case, tally: Tally, add: Callable[[Finding], Finding]
) -> None:
    """Add the failure of a call as a finding, or note it in the tally, depending on the check."""
    check, raised, called = tally.check, isinstance(failure, TargetRaised), subject.last_case or case
    output, note = "gradient" if of_gradients(failure) else "y", f"raised {failure}" if raised else str(failure)
    if known := subject.known_violations.known_failure(subject.last_case or case, output, failure):
        tally.note_lacking(known)
    elif check.raising == "unsupported" and not _is_no_refusal(check, subject, case, failure):
        shown = Finding(case, violated=True, output=output, note=note, failure=failure_shown(failure))
        if not subject.known_violations.without_known(check.requirement, shown).violated:
            add(shown)
        else:
            tally.unsupported, tally.refused = tally.unsupported or note, True
    elif check.raising != "error" and failure_is_about(check, subject, case, failure):
        output = "derivative" if check.raising == "unsupported" else output
        shown = called if isinstance(failure, MissingGradient) else case
        add(Finding(shown, violated=True, output=output, note=note, failure=failure_shown(failure)))
    elif isinstance(failure, MissingGradient) and failure_is_about(check, subject, case, failure):
        # CM-T3 judges the plain call of a case. What is missing in another call of this check, nobody else judges.
        add(Finding(called, violated=True, output=output, note=note, failure=failure_shown(failure)))
    elif not case.mixed or failure_is_about(check, subject, case, failure):
        # A target need not take float32 parameters beside 16-bit data: CM-D1 says that it takes no such plain call.
        # No counterexample shows the line of an error, so its reason does.
        line = failure.where if isinstance(failure, TargetRaised) else None
        at = f", at {line.with_source}" if line is not None else ""
        tally.error = tally.error or (f"the call {note}{at}" if raised else note)


def _is_no_refusal(check: Check, subject: Subject, case: Case, failure: TargetRaised | BadOutput) -> bool:
    """Whether a derivative came in another shape or number, or wrote to an argument: one that lacks it would raise."""
    wrong = isinstance(failure, BadOutput) and failure.kind in ("shape", "count", "changed")
    return wrong and failure_is_about(check, subject, case, failure)


def of_gradients(failure: TargetRaised | BadOutput) -> bool:
    """Whether the target failed while taking gradients."""
    return failure.stage == "vjp" if isinstance(failure, TargetRaised) else failure.kind == "gradient"


def failure_is_about(check: Check, subject: Subject, case: Case, failure: TargetRaised | BadOutput) -> bool:
    """
    Whether the failure is about what this check tests.

    It is if the plain call of the case (and its gradient) works, since then the check's own calls failed; or if the
    check is about the plain call itself.
    """
    before = len(subject.log)
    try:
        _ = subject.observe(case).outputs
        if check.gradient or of_gradients(failure):
            _ = subject.observe(case).gradients
    except CALL_FAILED:
        return check.plain
    finally:
        del subject.log[before:]  # these calls are not part of the violation
    return True


def plain_call(subject: Subject, case: Case, *, gradients: bool) -> None:
    """
    Make the plain call of a case, with ``gradients`` also its vjp.

    The results are then remembered, so that a check counts as making extra calls only if it makes calls besides these.
    """
    subject.target.begin()
    with contextlib.suppress(*CALL_FAILED):
        _ = subject.observe(case).outputs
        if gradients and not subject.forward_only:
            _ = subject.observe(case).gradients


def deviation(subject: Subject, tally: Tally) -> str:
    """
    Why a result deviates: known violations and declared conventions, as one text.

    The reasons for a binding's own declarations are reported with the subject.
    """

    def source(key: str) -> str:
        if key in subject.measured:
            return f"measured: {subject.measured[key]}"
        return f"declared by the {'binding' if key in subject.binding.conventions else 'caller'}"

    known = subject.known_violations.deviations(tally.check.requirement)
    declared = ", ".join(f"{key}={subject.conventions[key]} ({source(key)})" for key in sorted(tally.deviates))
    return "; and ".join([*(one.reason for one in known if one.shown), *([declared] if declared else [])])
