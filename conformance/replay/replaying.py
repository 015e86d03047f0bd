"""The failed cases of a report, judged again, on the target where they failed or on another."""

from __future__ import annotations

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
from ..results.report import Report
from ..running.single_process import SingleProcess
from .reading import FailedCase, failed_cases

#: How many requirements a message names.
_MOST_NAMED = 8


class NothingToReplay(NormspecError):
    """A report has no failed case, or none of an operator and dtype that the targets have."""


def replayed(request: Request, file: str, listener: Listener | None) -> Report:
    """
    The report on the failed cases of another report, and on nothing else.

    Each requirement is judged on exactly the case where it was violated, by the binding of the same name if the target
    has one, and otherwise by each binding of the operator. What failed because that run required it is required again.
    Raises DamagedReport, NothingToReplay, and the NormspecError of a target that cannot be used.
    """
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
    notes = [f"judged on the {again.words} of {file}, and on nothing else"]
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

    failed: int = 0
    advice: int = 0

    @property
    def words(self) -> str:
        """The numbers of cases in words: "3 failed cases and 1 case of advice"."""
        parts = [f"{self.failed} failed case{'' if self.failed == 1 else 's'}"] if self.failed else []
        parts += [f"{self.advice} case{'' if self.advice == 1 else 's'} of advice"] if self.advice else []
        return " and ".join(parts)

    def judged(self, cases: Sequence[FailedCase]) -> Report:
        """The report on these cases."""
        self.measure_paces()
        results: list[Result] = []
        asked = list(self._asked(cases))
        judged = {id(case) for *_, several in asked for case in several}
        self.advice = sum(one.advice for one in cases if id(one.case) in judged)
        self.failed = len(judged) - self.advice
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
        return attrs.evolve(whole, results=tuple(sorted(folded(results), key=place)))

    def _asked(self, cases: Sequence[FailedCase]) -> Iterator[tuple[Target, Binding, str, str, list[Case]]]:
        """Yield what to judge: target, binding, dtype, requirement, and the cases."""
        for target in self.plan.targets:
            own = [one for one in cases if one.target == target.name] or cases
            found = grouped(
                ((place, one.dtype, one.requirement), one.case)
                for one in own
                if _is_asked(one, self.plan) and one.dtype in target.dtypes
                for place in _bindings(target, one)
            )
            for (place, dtype, requirement), several in found.items():
                yield target, target.bindings[place], dtype, requirement, several

    def _judged(
        self, target: Target, binding: Binding, dtype: str, requirement: str, cases: Sequence[Case]
    ) -> Result | None:
        """The result on one requirement; None if it is not about this dtype, or was not asked for."""
        subject, probe = self.subject(target, binding, dtype), self._probes.usable(target, binding, dtype)
        check = next(
            (one for one in self._checks(binding.operator, subject.format) if one.requirement == requirement), None
        )
        if check is None:
            return None
        tally = Tally(at_the_seams(check) if binding.seams is not None else check, self.plan.level(requirement))
        if not probe.works:
            tally.error, tally.unsupported = (probe.reason, "") if probe.lost else ("", probe.reason)
            self._note_loss(subject, lost=probe.lost)
            return self._result(subject, tally, subject.new_library(), complete=False)
        for case in cases:
            fit, why_not = _fitted(case, subject)
            assert case.description is not None
            if fit is not None and not tally.check.when(fit):
                fit, why_not = None, f"{requirement} is not judged on the stored case"
            if fit is None:
                tally.note_declined(case.description, why_not)
                continue
            tally.run(subject, fit, case.description)
            self._note_loss(subject, lost=tally.lost)
            if tally.violation is not None:
                break
        result = self._result(subject, tally, subject.new_library(), complete=False)
        if result.verdict is Verdict.NOT_EXERCISED:
            return attrs.evolve(result, reason="nothing about this requirement can be judged on that case")
        return result


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
