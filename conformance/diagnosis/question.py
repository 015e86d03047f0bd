"""Questions: asked of a target and of every candidate alike."""

from __future__ import annotations

import contextlib
import re

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.errors import CALL_FAILED, BadOutput, MissingGradient, Unsupported
from ..cases.case import Case
from ..cases.description import Description
from ..checks.registry import Check
from ..engine.tally import Tally, findings
from ..judging.findings import Finding
from ..judging.subject import Subject
from .answers import WRONG_STEP_ROUNDINGS, Answer, ComparisonOutcome, Values

#: Failures that are not about numbers. The same mistake gives the same words, shapes and dtypes included.
_VERBATIM = ("count", "shape", "dtype", "missing")

#: Tolerance on results of a call that should have been refused, in roundoffs of the largest value, for one mistake.
_ACCEPTED_TOLERANCE = 8.0


@attrs.frozen(eq=False)
class Question:
    """A check on a case; without a check, the outputs or the gradients of the case itself."""

    case: Case
    description: Description
    check: Check | None = None
    #: Whether it is about derivatives; a plain question is about outputs or about gradients.
    derivative: bool = False
    #: An output that no candidate computes under the target's conventions; "" for none.
    ignored_output: str = ""
    #: A case that is called first. What a function remembers is then the same, whatever was asked before.
    preceded_by: Case | None = None

    @property
    def plain(self) -> bool:
        """Whether it is about the outputs or gradients of the case itself."""
        return self.check is None

    def answered_by(self, subject: Subject, *, remembers: bool = True) -> Answer:
        """The subject's answer; ``remembers``: whether its results may depend on earlier calls."""
        subject.target.begin()
        if self.preceded_by is not None and remembers:
            subject.forget()
            call_first(subject, self.preceded_by)
        with np.errstate(all="ignore"):
            return (
                self._plain_answer(subject) if self.check is None else _answer_to_check(self.check, subject, self.case)
            )

    def _plain_answer(self, subject: Subject) -> Answer:
        case, truth = self.case, subject.truth(self.case)
        try:
            found = subject.results(case, gradients=self.derivative)
        except CALL_FAILED as failure:
            missing = failure.missing if isinstance(failure, MissingGradient) else ()
            return Answer(words=how_it_fails(failure), missing=missing)
        exact = truth.gradients() if self.derivative else truth.outputs()
        values: dict[str, Values] = {}
        for name, got in found.items():
            if name != self.ignored_output and exact.get(name) is not None:
                found_here = Values.of(got, exact[name], subject.bound(case, name)(False))
                values[name] = _with_terms(found_here, case, name)
        return Answer(values)


def call_first(subject: Subject, case: Case) -> None:
    """Call a case and take its gradients; failures are ignored."""
    with contextlib.suppress(*CALL_FAILED):
        subject.outputs(case)
    if not subject.forward_only:
        with contextlib.suppress(*CALL_FAILED):
            subject.pull(case)


def results_if_any(subject: Subject, case: Case, *, gradients: bool) -> dict[str, np.ndarray]:
    """The gradients or the outputs of a fresh call; none if it fails."""
    subject.target.begin()
    with contextlib.suppress(*CALL_FAILED):
        return subject.results(case, gradients=gradients)
    return {}


def gradient_choices(subject: Subject) -> tuple[bool, ...]:
    """Without gradients, and with them unless the user said that there are none."""
    return (False,) if subject.forward_only else (False, True)


def how_it_fails(failure: Exception) -> str:
    """How a call fails, without the words that each author chooses."""
    if isinstance(failure, MissingGradient):
        return f"no gradient of {', '.join(failure.missing)}"
    if isinstance(failure, Unsupported):  # including a layer with an eps of its own
        return Unsupported.__name__
    if isinstance(failure, BadOutput):
        return str(failure) if failure.kind in _VERBATIM else failure.kind
    return type(failure).__name__


def _answer_to_check(check: Check, subject: Subject, case: Case) -> Answer:
    tally = Tally(check)
    found = findings(check, subject, case, tally, whole=True)
    comparisons = tuple(
        _outcome_of_accepted(one, subject) if one.failure == "accepts" else _outcome_of(one, subject) for one in found
    )
    first = next((outcome for outcome in comparisons if outcome.words), None)
    if first is None:
        failed = "the call fails" if tally.error else "declined" if tally.unsupported else ""
        return Answer(words=failed, comparisons=() if failed else comparisons)
    return Answer({first.output: first.values} if first.values else {}, f"{first.output}: {first.words}", comparisons)


def _outcome_of(found: Finding, subject: Subject) -> ComparisonOutcome:
    note = _without_numbers(found.note)
    if not (found.violated and found.judged):
        return ComparisonOutcome(found.output, note=note)
    unit, bitwise = FORMATS[subject.format].unit_roundoff, found.envelope == 0 and found.elements is None
    words = found.note if found.failure in _VERBATIM or bitwise else found.failure or note
    outcome = ComparisonOutcome(
        found.output, words or "wrong", note, found.index, found.expected, found.got, bitwise, unit
    )
    seen = found.elements
    if seen is None:
        return outcome
    judged = seen.ratio >= 0
    got, expected, envelope = (np.where(judged, one, 0.0) for one in (seen.got, seen.expected, seen.envelope))
    return attrs.evolve(outcome, values=_with_terms(Values(got, expected, envelope, unit), found.case, found.output))


def _with_terms(values: Values, case: Case, output: str) -> Values:
    """The values; with a wrong formula y may be a sum with x, whose roundings stay where the terms cancel."""
    if not case.record.composed or output != "y" or values.got.shape != case.x.shape:
        return values
    return attrs.evolve(values, unstable=WRONG_STEP_ROUNDINGS * values.unit * np.abs(case.x.astype(np.float64)))


def _outcome_of_accepted(found: Finding, subject: Subject) -> ComparisonOutcome:
    """The result of a call that should have been refused. No value is right there, and its accuracy is unknown."""
    outcome, unit = _outcome_of(found, subject), FORMATS[subject.format].unit_roundoff
    try:
        outputs = subject.outputs(found.case)
        got = np.concatenate([value.astype(np.float64).reshape(-1) for value in outputs.values()])
    except CALL_FAILED as failure:
        return attrs.evolve(outcome, words=f"{outcome.words}: {how_it_fails(failure)}")
    finite = np.abs(got[np.isfinite(got)])
    slack = np.full(got.shape, _ACCEPTED_TOLERANCE * unit * finite.max(initial=0.0))
    return attrs.evolve(outcome, values=Values(got, np.zeros_like(got), slack, unit))


def _without_numbers(note: str) -> str:
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", note)
