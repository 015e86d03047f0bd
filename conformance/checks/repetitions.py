"""Repetitions of a call: whether its results differ, and whether tracking gradients is the reason."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import attrs
import numpy as np

from ...spec.errors import CALL_FAILED, MissingGradient, Unsupported
from ..cases.case import Case
from ..judging.calling_subject import LARGE
from ..judging.findings import Finding
from ..judging.subject import Subject
from ..judging.truth import gradient_name
from .later_calls import different_values
from .relations import agree, same

#: How the note of a violation begins if repetitions of one call showed it.
REPEATED = "a repeated call"
#: The note of a violation that the first call on a single thread showed.
_ON_ONE_THREAD = "a call on one thread"
#: How the notes of violations begin that only repetitions show.
SHOWN_BY_REPEATING = (REPEATED, _ON_ONE_THREAD)

#: Repetitions of a call between two calls of another case of the same shapes, which change what a target keeps.
_CALLS_IN_A_ROUND = 32


#: A result that differs: its name, the first result to compare it with, and its value. The first call on one thread has
#: nothing to be compared with: it adds in another order than a call on several, which CM-P3 allows.
Difference = tuple[str, np.ndarray | None, np.ndarray]


@attrs.define
class Repetitions:
    """Differences that repeated calls of a case showed, compared with the first call."""

    #: The first result that differed: its name, its value in the first call, and the value that differed.
    difference: tuple[str, np.ndarray, np.ndarray] | None = None
    #: The findings about results that differ, up to the first violation.
    findings: list[Finding] = attrs.field(factory=list)

    @property
    def violated(self) -> bool:
        return bool(self.findings) and self.findings[-1].violated


def repetitions(subject: Subject, case: Case) -> Repetitions:
    """Call a case repeatedly, once for both checks. The envelope judges only results that differ."""
    if case not in subject.repeated:
        found = Repetitions()
        for name, first, value in _differences(subject, case):
            if first is not None:
                found.difference = found.difference or (name, first, value)
            is_output = name in case.record.outputs
            judge = subject.judge_output if is_output else subject.judge_gradient
            if first is None:  # a result that is wrong on several threads too is no matter of threads
                seen = subject.observe(case)
                plain = (seen.outputs if is_output else seen.gradients).get(name)
                if plain is not None and judge(case, name, plain).violated:
                    continue
            found.findings.append(judge(case, name, value, note=_ON_ONE_THREAD if first is None else REPEATED))
            if found.violated:
                break
        subject.repeated[case] = found  # only at the end: if a call raised, nothing is known
    return subject.repeated[case]


#: Rounds of a large call that use all threads. The others use one, since on a busy machine threads wait for one another
#: a hundred times as long as they work. A real race shows in far more than one call in sixty.
_THREADED_ROUNDS = 1


def _differences(subject: Subject, case: Case) -> Iterator[Difference]:
    rounds = subject.repetitions(case) // _CALLS_IN_A_ROUND
    threaded = min(rounds, _THREADED_ROUNDS) if case.x.size >= LARGE else rounds
    for alone, count in ((False, threaded), (True, rounds - threaded)):
        if count:
            yield from _different_outputs(subject, case, count, alone=alone)
            if not subject.forward_only:
                yield from _different_gradients(subject, case, count, alone=alone)


def _different_outputs(subject: Subject, case: Case, rounds: int, *, alone: bool) -> Iterator[Difference]:
    first = subject.observe(case).outputs
    for place in range(rounds):
        subject.outputs(different_values(case))
        several = _distinct(subject.repeated_outputs(case, _CALLS_IN_A_ROUND, alone=alone))
        if alone and not place:
            first = next(several)
            yield from ((name, None, value) for name, value in first.items())
        for outputs in several:
            for name, value in outputs.items():
                if not agree(first[name], value):
                    yield name, first[name], value


def _different_gradients(subject: Subject, case: Case, rounds: int, *, alone: bool) -> Iterator[Difference]:
    try:
        first = subject.observe(case).gradients
    except Unsupported:
        return
    for place in range(rounds):
        try:
            several = _distinct(subject.repeated_gradients(case, _CALLS_IN_A_ROUND, alone=alone))
        except MissingGradient as missing:  # a gradient that comes and goes is a difference
            lost = {gradient_name(name): np.full_like(case.inputs[name], np.nan) for name in missing.missing}
            several = iter([lost])
        if alone and not place:
            first = next(several)
            yield from ((name, None, value) for name, value in first.items())
        for found in several:
            for name, value in found.items():
                known = first.get(name, np.zeros_like(value))
                if not agree(known, value):
                    yield name, known, value


def _distinct(results: Iterable[dict[str, np.ndarray]]) -> Iterator[dict[str, np.ndarray]]:
    """The results without repeated objects: those of calls that agree are one object (adapters/repeats.py)."""
    return iter({id(one): one for one in results}.values())


def repeated_where_tracking_differs(subject: Subject, case: Case) -> Iterator[Finding]:
    """Judge repetitions of a call if tracking only seems to make a difference; there are none where it makes none."""
    if subject.forward_only:
        return
    with contextlib.suppress(*CALL_FAILED):
        seen = subject.observe(case)
        found = [one for one in same_when_tracked(subject, case, seen.outputs, seen.tracked, REPEATED) if one.violated]
        if found and not is_by_tracking(subject, case):
            again = repetitions(subject, case)
            yield from again.findings if again.violated else found


def same_when_tracked(
    subject: Subject, case: Case, untracked: dict[str, np.ndarray], tracked: dict[str, np.ndarray], note: str
) -> Iterator[Finding]:
    """[~]: the outputs of a call whose gradients are tracked equal those of a call without tracking."""
    for name, value in untracked.items():
        if name in tracked:
            yield same(subject, case, name, tracked[name], value, note)


#: How often a difference by tracking is looked for again.
_LOOKED_AGAIN = 3


def is_by_tracking(subject: Subject, case: Case) -> bool:
    """Whether calls that track differ from others each time, and the others repeat themselves."""
    if case not in subject.by_tracking:
        logged = len(subject.log)
        subject.by_tracking[case] = (
            subject.may_track
            and not repetitions(subject, case).violated
            and all(_differs_again(subject, case) for _ in range(_LOOKED_AGAIN))
        )
        if subject.by_tracking[case]:  # otherwise these calls are what shows that they do not repeat themselves
            del subject.log[logged:]
    return subject.by_tracking[case]


def _differs_again(subject: Subject, case: Case) -> bool:
    untracked, (tracked, _) = subject.outputs(case), subject.tracked(case)
    return any(one.violated for one in same_when_tracked(subject, case, untracked, tracked, ""))
