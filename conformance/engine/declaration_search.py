"""
The search for a declaration under which all violations of a binding disappear: one convention, or the smallest set.

Violations that a layer of the framework shows too (upstream.py) are left out: no declaration is about them. So is what
could not be judged because the target was lost.

Each candidate is first judged on the violated cases, until a violation stays, and has to promise something about the
wrong values there (judged_under.py). A candidate that survives is judged as a run would judge it, in all dtypes of the
run, on every requirement whose verdict it may change. If none passes that too, the report names none.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.target import Target
from ...spec import requirements
from ...spec.conventions import CONVENTIONS, NORMATIVE, matters_in, operators_about
from ...spec.errors import TargetLost
from ...spec.identifiers import is_common
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..cases.shapes import elements
from ..checks.registry import COSTLY, Check
from ..grouping import grouped
from ..judging.library import Library
from ..judging.subject import Subject
from ..judging.verdicts import Result, Verdict
from ..requests.plan import Plan
from ..results.report import Report
from .asking import asking
from .declaration_evidence import Evidence
from .engine import Run
from .judged_under import WIDENING, is_judged, leaves_some_unjudged
from .tally import Tally, stays_violated

#: How many candidates that survive the violated cases are judged in full. Each costs as much as the binding's share of
#: the run did, and so far the first was always the right one if there was one.
_MOST_JUDGED = 3

#: The largest set of conventions. Three unrelated deviations occur; with four, someone should look at the function.
_LARGEST_SET = 3

#: Time limit of a search: _TIME_FACTOR times that of the run, because judging a survivor is another such run, but at
#: least _MIN_SECONDS seconds, so that a busy machine does not decide the outcome.
_TIME_FACTOR, _MIN_SECONDS = 2.0, 30.0

#: Number of violations of each dtype that are tried to see whether a change affects any: of requirements of all
#: operators, which are about dtypes and layouts, and of the operator's own page, which are about its values.
_SMALLEST_CASES = 3

#: The conventions that are tried, the plainest first. `affine` is missing: its normative value
#: has the widest envelope, so no other value excuses more.
_TRIED = (
    "variance_algorithm", "running_variance", "momentum", "single_value", "gain", "eps_dtype", "float64",
    "mixed_dtypes", "cast", "storage", "subnormals",
)  # fmt: skip

#: Conventions that cannot make a requirement fail that passes now, except the requirements listed with them. The first
#: five choose an accuracy class, and the envelope of a weaker class is never smaller (spec/accuracy.md).
_AFFECTED_REQUIREMENTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("storage", "variance_algorithm", "affine", "cast", "subnormals"), frozenset()),
    "mixed_dtypes": frozenset({"CM-D1", "CM-D2", "CM-D3"}),
}

#: How often a call is repeated when a survivor is judged in full. Few are enough: the run has already tested whether
#: calls repeat themselves, and a case on which they did not is a violated case, which is repeated as many
#: times as in the run.
_REPEATS = 32

#: A change of the declared conventions.
Change = Mapping[str, str]


class _Rejected(BaseException):
    """A candidate is rejected. It is not an Exception, because the engine reports those as defects of normspec."""


@attrs.define
class _Trial(Run):
    """A run that stops at the first violated MUST, or at a point in time."""

    until: float = float("inf")

    def _note(self, subject: Subject, tallies: Sequence[Tally], share: float) -> None:
        if time.perf_counter() > self.until or any(tally.verdict is Verdict.FAIL for tally in tallies):
            raise _Rejected


def with_passing_declarations(run: Run, report: Report) -> Report:
    """The report, in which each binding names the declaration that would make it conform, if one was found."""
    plan = run.plan
    if not plan.explain or report.stopped:
        return report
    failing = grouped(((one.target, one.op, one.binding), one) for one in report.failures())
    until = time.perf_counter() + max(_MIN_SECONDS, _TIME_FACTOR * report.seconds)
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    cut_short: dict[str, None] = {}
    with np.errstate(all="ignore"):
        for target in plan.targets:
            for binding in target.bindings:
                place = (target.name, binding.operator, binding.name)
                if place in failing:
                    alone = replace(target, bindings=(binding,))
                    own = [one for one in failing[place] if one.upstream is None]
                    modes = {dtype: report.mode_of(*place, dtype) for dtype in target.dtypes}
                    search = _Search(run, alone, binding, own, until, _left_out(report, *place), modes)
                    with suppress(TargetLost), asking(target, report):
                        found[place] = search.found() if own else ()
                        if own and not found[place] and time.perf_counter() > until:
                            cut_short[target.name] = None
    return attrs.evolve(
        report,
        cut_short=tuple(cut_short),
        subjects=tuple(
            {**subject, "passes_under": found.get((subject["target"], subject["op"], subject["binding"]), ())}
            for subject in report.subjects
        ),
    )


def _left_out(report: Report, target: str, operator: str, binding: str) -> dict[str, frozenset[str]]:
    """By dtype: the requirements that are violated upstream, and those that could not be judged as the target died."""
    found: dict[str, frozenset[str]] = {}
    for one in report.results:
        unjudged = one.verdict is Verdict.ERROR and target in report.lost
        if (one.target, one.op, one.binding) == (target, operator, binding) and (one.upstream is not None or unjudged):
            found[one.dtype] = found.get(one.dtype, frozenset()) | {one.requirement}
    return found


@attrs.define
class _Search:
    """The search for the declaration of one binding."""

    run: Run
    target: Target
    binding: Binding
    violations: Sequence[Result]
    until: float
    #: The requirements that no declaration is about, by dtype.
    left_out: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    #: The mode that the binding was judged in, by dtype.
    modes: Mapping[str, str] = attrs.field(factory=dict)
    #: The cases of the violations, shared by all trials.
    _libraries: dict[Any, Library] = attrs.field(factory=dict)
    #: Whether a violation stays, by requirement, dtype and the part of a change that matters in that dtype.
    _stays: dict[tuple[str, str, frozenset[tuple[str, str]]], bool] = attrs.field(factory=dict)

    def found(self) -> tuple[str, ...]:
        """The declaration as KEY=VALUE texts; empty if there is none, or none was found in time."""
        violations = [result for result in self.violations if result.violated_on is not None]
        if len(violations) < len(self.violations):  # some violation has no case to try again
            return ()
        # The costly ones last, and the smaller cases first: most changes are rejected by the first few.
        violations.sort(key=lambda result: (result.requirement in COSTLY, elements(result.violated_on)))
        for change in itertools.islice(self._surviving(violations), _MOST_JUDGED):
            if not self._all_show_again(violations):
                return ()
            if self._conforms_under(change):
                return tuple(f"{key}={value}" for key, value in change.items())
        return ()

    def _all_show_again(self, violations: Sequence[Result]) -> bool:
        """
        Whether each violation shows again without any change.

        If one does not, earlier calls decide, as in code that is wrong in its first call: no declaration is about that.
        """
        return all(stays_violated(*self._asked_again({}, one), one.violated_on) for one in violations)

    def _surviving(self, violations: Sequence[Result]) -> Iterator[Change]:
        """The candidates that remove the violations of all violated cases, smaller sets first."""
        single, few = list(self._single_changes()), _smallest(violations)
        useful: list[Change] = []
        for change in single:
            stays = [result for result in few if self._violated(change, result)]
            if not stays and self._removes_all(change, violations):
                yield change
            if len(stays) < len(few):
                useful.append(change)
        for size in range(2, _LARGEST_SET + 1):
            for several in itertools.combinations(single if size == 2 and useful else useful, size):
                change = {key: value for one in several for key, value in one.items()}
                if len(change) < size or not any(one in useful for one in several):
                    continue
                if time.perf_counter() > self.until:
                    return
                if self._removes_all(change, violations):
                    yield change

    def _removes_all(self, change: Change, violations: Sequence[Result]) -> bool:
        """Whether no violated case stays violated under the change, and nothing speaks against it."""
        # What is known to stay first.
        known = sorted(violations, key=lambda result: not self._stays.get(_place(result, change), False))
        stays = any(self._violated(change, result) for result in known)
        evidence = Evidence(self.run.plan, self.target, self.binding, violations, self._undeclared)
        if stays or ("float64" in change and evidence.is_not_of_float32()):
            return False
        if leaves_some_unjudged(violations, partial(self._is_judged, change)):
            return False
        return not ("storage" in change and evidence.is_truncated())

    def _single_changes(self) -> Iterator[Change]:
        """The single changes that the binding could declare."""
        operator, dtypes = self.binding.operator, {result.dtype for result in self.violations}
        keys = [
            key
            for key in _TRIED
            if operator in operators_about(key) and any(matters_in(key, dtype) for dtype in dtypes)
        ]
        declared = {**NORMATIVE, **self.binding.conventions, **self.run.plan.conventions}
        found = [{key: value} for key in keys for value in later_values(key, declared[key], operator)]
        # Try the weakest changes last, so that a tighter one that also passes is named. The table lists one-pass, the
        # weakest variance, first. float64=float32 excuses the loss of half of the digits for any reason.
        weakest: list[Change] = [{"variance_algorithm": "one-pass"}, {"float64": "float32"}]
        found.sort(key=lambda change: weakest.index(change) + 1 if change in weakest else 0)
        return iter(found)

    def _plan(self, change: Change, dtype: str) -> Plan:
        plan = self.run.plan
        declared = {**plan.conventions, **change}
        return attrs.evolve(
            plan,
            targets=(self.target,),
            dtypes=(dtype,),
            conventions=declared,
            requirements=self._affected_requirements(change, dtype),
            explain=False,
        )

    def _affected_requirements(self, change: Change, dtype: str) -> frozenset[str] | None:
        """The requirements of the run whose verdict may differ under a change; None means all requirements."""
        asked, left_out = self.run.plan.requirements, self.left_out.get(dtype, frozenset())
        if left_out:
            asked = (frozenset(requirements()) if asked is None else asked) - left_out
        if any(key not in _AFFECTED_REQUIREMENTS for key in change):
            return asked
        found = frozenset(one.requirement for one in self.violations).union(
            *(_AFFECTED_REQUIREMENTS[key] for key in change)
        )
        return found if asked is None else found & asked

    def _trial(self, change: Change, dtype: str) -> _Trial:
        return _Trial(self._plan(change, dtype), paces=dict(self.run.paces), until=self.until)

    def _subject(self, change: Change, dtype: str) -> tuple[_Trial, Subject]:
        trial = self._trial(change, dtype)
        subject = trial.subject(self.target, self.binding, dtype)
        subject.mode = self.modes.get(dtype, subject.mode)
        return trial, subject

    def _undeclared(self, dtype: str) -> Subject:
        """The subject as the run judged it."""
        return self._subject({}, dtype)[1]

    def _violated(self, change: Change, result: Result) -> bool:
        """Whether a violation stays on the case on which it was found."""
        place = _place(result, change)
        if place not in self._stays:
            self._stays[place] = self._is_violated(dict(place[-1]), result)
        return self._stays[place]

    def _is_violated(self, change: Change, result: Result) -> bool:
        if not change:
            return True
        return stays_violated(*self._asked_again(change, result), result.violated_on)

    def _is_judged(self, change: Change, result: Result) -> bool:
        """Whether a violation that is gone under a change is judged under it, or gone without any wider envelope."""
        others = {key: value for key, value in change.items() if key not in WIDENING}
        if len(others) == len(change) or not self._violated(others, result):
            return True
        return is_judged(*self._asked_again(change, result), result)

    def _asked_again(self, change: Change, result: Result) -> tuple[list[Check], Subject, Case]:
        """The checks that a violation is about, the subject under a change, and the violated case."""
        trial, subject = self._subject(change, result.dtype)
        made = subject.new_library()
        case = self._libraries.setdefault(made.kind, made).case(result.violated_on)
        return [one for one in trial.checks_on(subject) if one.requirement == result.requirement], subject, case

    def _conforms_under(self, change: Change) -> bool:
        """
        Whether the binding, judged in full under the change, violates no MUST.

        In each dtype with violations, some requirement that is violated now must still be judged: a class of accuracy
        that promises nothing where a violation shows does not explain it.
        """
        dtypes = list(dict.fromkeys(result.dtype for result in self.violations))
        asked = self.run.plan.dtypes or self.target.dtypes
        # Where nothing is violated and the change does not matter, a trial would repeat the run.
        others = [one for one in asked if one not in dtypes and any(matters_in(key, one) for key in change)]
        wanted = {(result.dtype, result.requirement) for result in self.violations}
        for dtype in (*dtypes, *others):
            trial = self._trial(change, dtype)
            trial.plan = attrs.evolve(trial.plan, profile=attrs.evolve(trial.plan.profile, repeats=_REPEATS))
            try:
                report = trial.report([(self.binding.operator, dtype)])
            except _Rejected:
                return False
            if trial.interrupted:  # by Ctrl-C: half of a run shows nothing
                raise KeyboardInterrupt
            if report.partial or report.failures():
                return False
            judged = {(r.dtype, r.requirement) for r in report.results if r.verdict in (Verdict.PASS, Verdict.DEVIATES)}
            if dtype in dtypes and not wanted & judged:
                return False
        return True


def later_values(convention: str, declared: str, operator: str) -> Sequence[str]:
    """The values of a convention that an operator may declare after the declared one, in order."""
    values = CONVENTIONS[convention]
    later = values[values.index(declared) + 1 :]
    # All classes of storage but H0 let each operation of a composed operator round; "native" is the plainest name.
    return later[-1:] if convention == "storage" and OPERATORS[operator].composed else later


def _place(result: Result, change: Change) -> tuple[str, str, frozenset[tuple[str, str]]]:
    """A violation, and the part of a change that may matter to it: the key of whether it stays."""
    return (
        result.requirement,
        result.dtype,
        frozenset(one for one in change.items() if matters_in(one[0], result.dtype)),
    )


def _smallest(violations: Sequence[Result]) -> list[Result]:
    """The smallest violated cases of every dtype and kind: enough to see whether a change affects any."""
    kinds = grouped(((one.dtype, is_common(one.requirement)), one) for one in violations)
    return [one for some in kinds.values() for one in some[:_SMALLEST_CASES]]
