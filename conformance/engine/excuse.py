"""
The declaration under which all violations of a binding would go: the one, or the smallest set, found by judging.

Candidates are put to the violated cases first, each until the first violation that stays. One that survives is judged
as a run would judge it, in all dtypes of the run, on every requirement that may come out otherwise than it did. Where
none passes that too, nothing is said.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...reference.formats import FORMATS
from ...spec.conventions import CONVENTIONS, NORMATIVE
from ...spec.operators import OPERATORS
from ..cases.shapes import elements
from ..checks.registry import Check
from ..checks.seams import at_the_seams
from ..judging.calls import CALL_FAILED
from ..judging.library import fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result, Verdict
from ..requests.plan import Plan
from ..results.report import Report
from .engine import Run
from .tally import Tally

#: How many candidates that survive the violated cases are judged in full: each costs as much as the binding's share of
#: the run did, and the first has always been the right one where there was one.
_JUDGED = 3

#: The largest set: three unrelated deviations are met, four are a function to be looked at.
_SET = 3

#: How long a search may take: as long as the run itself, twice, since judging a survivor is such a run again; and these
#: seconds where the run was shorter, so that a busy machine does not decide what is found.
_TWICE, _LEAST = 2.0, 30.0

#: How many errors of more than half a unit in the last place, all towards zero, show that results are cut off: by
#: chance as many roundings to nearest go one way once in 2^32 functions.
_CUT = 32

#: On how many cases of the run, beside the violated ones, errors are counted.
_CUT_OF = 40

#: How many violations of each dtype show whether a change bears on any of them.
_FEW = 4

#: Conventions under which what is not violated now stays so, and the requirements that they bear on all the same. The
#: first five choose a class of accuracy, and the envelope of a weaker class is never smaller (spec/accuracy.md).
_BEARS_ON: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("storage", "variance_algorithm", "affine", "cast", "subnormals"), frozenset()),
    "mixed_dtypes": frozenset({"CM-D1", "CM-D2", "CM-D3"}),
}

#: How often a call is repeated when a survivor is judged again: whether calls repeat themselves the run has found out,
#: and a case on which they did not is among the violated ones, repeated as often as there.
_REPEATS = 32

#: One change of what is declared.
Change = Mapping[str, str]


class _Rejected(BaseException):
    """A candidate is given up; not an Exception, since the engine takes those for defects of its own."""


@attrs.define
class _Trial(Run):
    """A run that ends at the first MUST that is violated, or at a point in time."""

    until: float = float("inf")

    def held(self, target: Target, binding: Binding, dtype: str) -> Subject:
        """A binding in a dtype, with the conventions of this trial."""
        return self.subject(target, binding, dtype)

    def put_to(self, subject: Subject) -> list[Check]:
        """The checks that run on the subject."""
        found = self._checks(subject.operator, subject.format)
        return found if subject.binding.seams is None else [at_the_seams(check) for check in found]

    def _run_case(self, subject: Subject, tallies: list[Tally], *arguments: Any, **options: Any) -> str | None:
        declined = super()._run_case(subject, tallies, *arguments, **options)
        if time.perf_counter() > self.until or any(_broken(tally) for tally in tallies):
            raise _Rejected
        return declined


def _broken(tally: Tally) -> bool:
    return tally.verdict is Verdict.FAIL


def excused(run: Run, report: Report) -> Report:
    """The report, with what each of its bindings would have to declare where that would make it conform."""
    plan = run.plan
    if not plan.explain or report.partial:
        return report
    failing: dict[tuple[str, str, str], list[Result]] = {}
    for result in report.failures():
        failing.setdefault((result.target, result.op, result.binding), []).append(result)
    until = time.perf_counter() + max(_LEAST, _TWICE * report.seconds)
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    with np.errstate(all="ignore"):
        for target in plan.targets:
            for binding in target.bindings:
                place = (target.name, binding.operator, binding.name)
                if place in failing:
                    alone = replace(target, bindings=(binding,))
                    found[place] = _Search(run, alone, binding, failing[place], until).found()
    return attrs.evolve(
        report,
        subjects=tuple(
            {**subject, "passes_under": found.get((subject["target"], subject["op"], subject["binding"]), ())}
            for subject in report.subjects
        ),
    )


@attrs.define
class _Search:
    """The search for one binding."""

    run: Run
    target: Target
    binding: Binding
    violations: Sequence[Result]
    until: float

    def found(self) -> tuple[str, ...]:
        """The declaration as KEY=VALUE texts; empty where there is none, or none was found in time."""
        known = [result for result in self.violations if result.violated_on is not None]
        if len(known) < len(self.violations):  # a defect of ours, or what was found by no case
            return ()
        known.sort(key=lambda result: elements(result.violated_on))
        for change in itertools.islice(self._surviving(known), _JUDGED):
            if self._holds(change):
                return tuple(f"{key}={value}" for key, value in change.items())
        return ()

    def _surviving(self, known: Sequence[Result]) -> Iterator[Change]:
        """The candidates under which none of the violated cases is violated any more, the smaller first."""
        single, few = list(self._single()), _few(known)
        useful: list[Change] = []
        for change in single:
            stays = [result for result in few if self._violated(change, result)]
            if not stays and self._excuses(change, known):
                yield change
            if len(stays) < len(few):
                useful.append(change)
        for size in range(2, _SET + 1):
            for several in itertools.combinations(single if size == 2 and useful else useful, size):
                change = {key: value for one in several for key, value in one.items()}
                if len(change) < size or not any(one in useful for one in several):
                    continue
                if time.perf_counter() > self.until:
                    return
                if self._excuses(change, known):
                    yield change

    def _excuses(self, change: Change, known: Sequence[Result]) -> bool:
        """Whether no violated case is violated under the change."""
        return not any(self._violated(change, result) for result in known) and not self._cut_off(change, known)

    def _single(self) -> Iterator[Change]:
        """What else the binding could declare."""
        operator, dtypes = self.binding.operator, {result.dtype for result in self.violations}
        keys = ["variance_algorithm"]
        if self.binding.record.statistics:
            keys += ["running_variance", "momentum"]
        if self.binding.record.channels_alone:
            keys.append("single_value")
        if self.binding.record.has_gain:
            keys.append("gain")
        if "float64" in dtypes:
            keys += ["eps_dtype", "float64"]
        if any(FORMATS[dtype].narrow for dtype in dtypes):
            keys.append("mixed_dtypes")
            keys += ["storage"] if self.binding.record.centred else ["cast", "storage"]
        keys.append("subnormals")
        declared = {**NORMATIVE, **self.binding.conventions, **self.run.plan.conventions}
        found = []
        for key in keys:
            values = CONVENTIONS[key]
            left = values[values.index(declared[key]) + 1 :]
            if key == "storage" and OPERATORS[operator].composed and left:
                # Every class but H0 lets each operation of a composed operator round: the plainest name for that.
                left = ("native",)
            found += [{key: value} for value in left]
        # Of the variances the tightest that passes is named first; the table lists one-pass, the weakest, before. In
        # float32 half of the digits may be missing for whatever reason: it is named where nothing else is.
        weakest: list[Change] = [{"variance_algorithm": "one-pass"}, {"float64": "float32"}]
        found.sort(key=lambda change: weakest.index(change) + 1 if change in weakest else 0)
        return iter(found)

    def _plan(self, change: Change, dtypes: tuple[str, ...]) -> Plan:
        plan = self.run.plan
        declared = {**plan.conventions, **change}
        return attrs.evolve(
            plan,
            targets=(self.target,),
            dtypes=dtypes,
            conventions=declared,
            requirements=self._bears_on(change),
            explain=False,
        )

    def _bears_on(self, change: Change) -> frozenset[str] | None:
        """Those of the run's requirements that may come out otherwise under a change; None where there are all."""
        asked = self.run.plan.requirements
        if any(key not in _BEARS_ON for key in change):
            return asked
        found = frozenset(one.requirement for one in self.violations).union(*(_BEARS_ON[key] for key in change))
        return found if asked is None else found & asked

    def _trial(self, change: Change, dtypes: tuple[str, ...]) -> _Trial:
        return _Trial(self._plan(change, dtypes), paces=dict(self.run.paces), until=self.until)

    def _subject(self, change: Change, dtype: str) -> tuple[_Trial, Subject]:
        trial = self._trial(change, (dtype,))
        return trial, trial.held(self.target, self.binding, dtype)

    def _violated(self, change: Change, result: Result) -> bool:
        """Whether a violation stays on the very case on which it was found."""
        trial, subject = self._subject(change, result.dtype)
        description = result.violated_on
        for check in trial.put_to(subject):
            if check.requirement == result.requirement:
                case = subject.library.fresh(description)
                if not check.when(case):
                    continue
                tally = Tally(check)
                tally.run(subject, case, description)
                if tally.violation is not None or tally.error:
                    return True
        return False

    def _holds(self, change: Change) -> bool:
        """
        Whether the binding, judged under the change, violates no MUST, and is still judged, in each dtype, on something
        that it violates now: a class that promises nothing where a violation shows does not explain it.
        """
        dtypes = list(dict.fromkeys(result.dtype for result in self.violations))
        asked = self.run.plan.dtypes or self.target.dtypes
        wanted = {(result.dtype, result.requirement) for result in self.violations}
        for dtype in (*dtypes, *(one for one in asked if one not in dtypes)):
            trial = self._trial(change, (dtype,))
            few = dict.fromkeys(("repeats", "slow_repeats", "large_repeats"), _REPEATS)
            trial.plan = attrs.evolve(trial.plan, profile=attrs.evolve(trial.plan.profile, **few))
            try:
                report = trial.report([(self.binding.operator, dtype)])
            except _Rejected:
                return False
            if report.partial or report.failures():
                return False
            judged = {(r.dtype, r.requirement) for r in report.results if r.verdict in (Verdict.PASS, Verdict.DEVIATES)}
            if dtype in dtypes and not wanted & judged:
                return False
        return True

    def _cut_off(self, change: Change, known: Sequence[Result]) -> bool:
        """
        Whether 16-bit results are exact ones whose digits were cut off, which no class of storage describes.

        They lie within the envelopes of classes that round several times, each to nearest, and so to either side.
        """
        if "storage" not in change:
            return False
        plan = self.run.plan
        others = plan.profile.cases(self.binding.operator, plan.seed)[:_CUT_OF]
        for dtype in dict.fromkeys(result.dtype for result in known if FORMATS[result.dtype].narrow):
            _, subject = self._subject({}, dtype)
            met = [result.violated_on for result in known if result.dtype == dtype]
            inward = outward = 0
            for description in [*met, *(fit for one in others if (fit := fitted(one, self.binding)) is not None)]:
                case = subject.library.fresh(description)
                try:
                    got = subject.outputs(case)["y"].astype(np.float64)
                except CALL_FAILED:
                    continue
                exact = subject.truth(case).outputs()["y"].hi
                off = np.abs(got) - np.abs(exact)
                beyond = np.abs(got - exact) > FORMATS[dtype].unit_roundoff * np.abs(exact)
                inward += int((beyond & (off < 0)).sum())
                outward += int((beyond & (off > 0)).sum())
                if outward or inward >= _CUT:
                    break
            if inward >= _CUT and not outward:
                return True
        return False


def _few(known: Sequence[Result]) -> list[Result]:
    """The smallest violated cases of every dtype: enough to see whether a change bears on any."""
    return [
        result
        for dtype in dict.fromkeys(result.dtype for result in known)
        for result in [one for one in known if one.dtype == dtype][:_FEW]
    ]
