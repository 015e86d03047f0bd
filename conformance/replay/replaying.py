"""The failed cases of a report, judged again, on the target where they failed or on another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...spec.errors import NormspecError
from ..cases.case import Case
from ..checks.seams import at_the_seams
from ..engine.engine import Run
from ..engine.folding import folded
from ..engine.order import Order
from ..engine.progress import Listener, Progress
from ..engine.tally import Tally
from ..grouping import grouped
from ..judging.subject import Subject
from ..judging.verdicts import Result, Verdict
from ..requests.plan import Plan
from ..requests.request import Request
from ..results.left_out import LeftOut
from ..results.report import Report
from ..running.single_process import SingleProcess
from .loading import load_report
from .reading import FailedCase, failed_cases

#: How many requirements a message names.
_MOST_NAMED = 8

#: Why a check had nothing to compare on a case.
_NOTHING = "nothing about this requirement can be judged on that case"


class NothingToReplay(NormspecError):
    """A report has no failed case, or none of an operator and dtype that the targets have."""


def replayed(request: Request, file: str, listener: Listener | None) -> Report:
    """
    The report on the failed cases of another report, and on nothing else.

    Each requirement is judged on exactly the case where it was violated, by the binding of the same name if the target
    has one, and otherwise by each binding of the operator. What failed because that run required it is required again.
    The report says which cases a target could not be judged on (`not_replayed`).
    Raises DamagedReport, NothingToReplay, and the NormspecError of a target that cannot be used.
    """
    load_report(file)  # every part of a damaged report is refused, as elsewhere, and not its cases alone
    kept = failed_cases(file)
    if not kept.cases:
        found = "its violations were kept without a case" if kept.without else "nothing in it is violated"
        raise NothingToReplay(f"{file} holds no failed case: {found}")
    if request.op is None and len(kept.operators) == 1:  # so that a function with another name needs no --op
        request = attrs.evolve(request, op=kept.operators)
    request = attrs.evolve(request, require=tuple(dict.fromkeys((*request.require, *kept.require))))
    with SingleProcess(request) as here:
        report = judged_again(here.run(), kept.cases, file, listener, without=kept.without)
    return attrs.evolve(report, profile=kept.profile, seed=kept.seed, only=request.only, require=request.require)


def judged_again(
    run: Run, cases: Sequence[FailedCase], file: str = "", listener: Listener | None = None, *, without: int = 0
) -> Report:
    """The report on these cases, by a run that has done nothing yet. Raises NothingToReplay."""
    again = _ReplayRun(run.plan, listener, paces=run.paces)
    report = again.judged(cases)
    if not report.results:
        raise NothingToReplay(_why_nothing(run, cases, file))
    notes = [f"judged on {again.words} of {file}, and on nothing else"]
    kept = "1 violation was" if without == 1 else f"{without} violations were"
    notes += [f"{kept} kept without a case"] if without else []
    return attrs.evolve(report, notes=tuple(notes), replayed=file)


def _is_asked(failed: FailedCase, plan: Plan) -> bool:
    """Whether a run judges the dtype and the requirement of a case."""
    asked = plan.requirements is None or failed.requirement in plan.requirements
    return asked and failed.dtype in (plan.dtypes or (failed.dtype,))


def _why_nothing(run: Run, cases: Sequence[FailedCase], file: str) -> str:
    """Why no case was judged: none is of what was asked, or the targets do not have what the cases are of."""
    left = [one for one in cases if _is_asked(one, run.plan)]
    if not left:
        names = list(dict.fromkeys(one.requirement for one in cases))
        dtypes = dict.fromkeys(one.dtype for one in cases)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        there = f"{', '.join(names[:_MOST_NAMED])}{more}, in {', '.join(dtypes)}"
        return f"no failed case of {file} is of what was asked; they are of {there}"
    operators = ", ".join(dict.fromkeys(f"{one.case.operator} in {one.dtype}" for one in left))
    names = " and ".join(target.name for target in run.plan.targets)
    have = "has" if len(run.plan.targets) == 1 else "have"
    return f"the failed cases of {file} are of {operators}, and {names} {have} no such case to judge"


@attrs.define
class _ReplayRun(Run):
    """A run on given cases."""

    words: str = ""
    #: By target, the cases that were judged, and why others were not.
    _judged_cases: set[tuple[str, int]] = attrs.field(factory=set)
    _why_not: dict[tuple[str, int], str] = attrs.field(factory=dict)

    def judged(self, cases: Sequence[FailedCase]) -> Report:
        """The report on these cases."""
        self.measure_paces()
        results: list[Result] = []
        asked = list(self._asked(cases))
        done = failing = 0
        try:
            with np.errstate(all="ignore"):  # the cases contain NaN and infinity on purpose
                for target, binding, dtype, requirement, several in asked:
                    result = self._judged(target, binding, dtype, requirement, several)
                    results += [] if result is None else [result]
                    done += 1
                    failing += result is not None and result.verdict is Verdict.FAIL
                    if self.listener is not None:
                        self.listener(Progress(done, len(asked), f"{binding.name} {dtype}: {requirement}", failing))
        except KeyboardInterrupt:
            self.interrupted = True
        whole = self.report([])
        place = Order(whole.subjects, self.plan.dtypes).place
        self.words = _in_words(
            cases, {id(one.case) for one in self._wanted(cases)}, {one for _, one in self._judged_cases}
        )
        left = () if self.interrupted else tuple(self._left_out(cases))
        return attrs.evolve(whole, results=tuple(sorted(folded(results), key=place)), not_replayed=left)

    def _wanted(self, cases: Sequence[FailedCase], target: str = "") -> list[FailedCase]:
        """The cases that are of what was asked; of a target that the report is about, its own."""
        own = [one for one in cases if one.target == target] or cases
        return [one for one in own if _is_asked(one, self.plan)]

    def _left_out(self, cases: Sequence[FailedCase]) -> Iterator[LeftOut]:
        """The cases that no binding of a target was judged on, by target and reason."""
        for target in self.plan.targets:
            wanted = self._wanted(cases, target.name)
            left = [one for one in wanted if (target.name, id(one.case)) not in self._judged_cases]
            lacking = [one.dtype for one in left if one.dtype not in target.dtypes]
            reasons = Counter(
                f"{target.name} has no {' and no '.join(dict.fromkeys(lacking))}"
                if one.dtype in lacking
                else self._why_not.get((target.name, id(one.case)), f"{target.name} has no {one.case.operator}")
                for one in left
            )
            for why, count in reasons.items():
                yield LeftOut(target.name, count, len(wanted), why)

    def _asked(self, cases: Sequence[FailedCase]) -> Iterator[tuple[Target, Binding, str, str, list[Case]]]:
        """Yield what to judge: target, binding, dtype, requirement, and the cases."""
        for target in self.plan.targets:
            found = grouped(
                ((place, one.dtype, one.requirement), one.case)
                for one in self._wanted(cases, target.name)
                if one.dtype in target.dtypes
                for place in _bindings(target, one)
            )
            for (place, dtype, requirement), several in found.items():
                yield target, target.bindings[place], dtype, requirement, several

    def _judged(
        self, target: Target, binding: Binding, dtype: str, requirement: str, cases: Sequence[Case]
    ) -> Result | None:
        """The result on one requirement; None if it is not about this dtype, or was not asked for."""
        subject, plainest = self.subject(target, binding, dtype), self._plainest_calls.usable(target, binding, dtype)
        check = next(
            (one for one in self._checks(binding.operator, subject.format) if one.requirement == requirement), None
        )
        if check is None:
            self._note_left(target, cases, f"{requirement} is not about {binding.name} in {dtype}")
            return None
        tally = Tally(at_the_seams(check) if binding.seams is not None else check, self.plan.level(requirement))
        if not plainest.works:
            tally.error, tally.unsupported = (plainest.reason, "") if plainest.lost else ("", plainest.reason)
            self._note_loss(subject, lost=plainest.lost)
            self._note_left(target, cases, plainest.reason)
            return self._result(subject, tally, subject.new_library(), complete=False)
        for case in cases:
            fit, why_not = _fitted(case, subject)
            assert case.description is not None
            if fit is not None and not tally.check.when(fit):
                fit, why_not = None, f"{requirement} is not judged on the stored case"
            if fit is None:
                tally.note_declined(case.description, why_not)
                self._note_left(target, [case], why_not)
                continue
            before = tally.judged
            tally.run(subject, fit, case.description)
            self._note_loss(subject, lost=tally.lost)
            if tally.judged == before:
                self._note_left(target, [case], tally.error or tally.unsupported or _NOTHING)
            if tally.violation is not None:  # the requirement is violated, whatever the other cases would show
                self._judged_cases.update((target.name, id(one)) for one in cases)
                break
            if tally.judged > before:
                self._judged_cases.add((target.name, id(case)))
        result = self._result(subject, tally, subject.new_library(), complete=False)
        return attrs.evolve(result, reason=_NOTHING) if result.verdict is Verdict.NOT_EXERCISED else result

    def _note_left(self, target: Target, cases: Sequence[Case], why: str) -> None:
        """Note why a binding was not judged on these cases; another binding may be."""
        for case in cases:
            self._why_not.setdefault((target.name, id(case)), why)


def _in_words(cases: Sequence[FailedCase], wanted: set[int], judged: set[int]) -> str:
    """How many of the wanted cases were judged: "the 3 failed cases and 1 of the 2 cases of advice"."""
    parts: list[str] = []
    for advice, one, several in ((False, "failed case", "failed cases"), (True, "case of advice", "cases of advice")):
        places = {id(case.case) for case in cases if case.advice == advice} & wanted
        if places:
            whole = "" if parts else "the "
            share = whole if places <= judged else f"{len(places & judged)} of the "
            parts.append(f"{share}{len(places)} {one if len(places) == 1 else several}")
    return " and ".join(parts)


def _bindings(target: Target, failed: FailedCase) -> list[int]:
    """The places of the bindings that judge a case."""
    there = [place for place, one in enumerate(target.bindings) if one.operator == failed.case.operator]
    named = [place for place in there if target.bindings[place].name == failed.binding]
    return named or there


def _fitted(case: Case, subject: Subject) -> tuple[Case | None, str]:
    """The case in the subject's dtypes; or None with a reason, if its numbers are not exact there."""
    library = subject.new_library()
    handed = np.dtype(case.x.dtype)
    wanted = library.format.dtype
    if handed == wanted:
        return library.adapted(case), ""
    arrays: Mapping[str, Any] = {**case.inputs, "g": case.g}
    with np.errstate(all="ignore"):
        moved = {
            name: array.astype(wanted) if array is not None and array.dtype == handed else array
            for name, array in arrays.items()
        }
    for name, array in moved.items():
        if array is not None and not np.array_equal(array.astype(np.float64), arrays[name].astype(np.float64), True):
            return None, f"{name} of that case is not exact in {library.dtype}, in which it computes"
    return library.adapted(case.replace(**moved)), ""
