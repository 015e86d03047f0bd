"""The engine: runs the checks of each subject over the cases, and turns their findings into results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import Binding
from ...adapters.dtypes import DTYPES
from ...adapters.frameworks import KNOWN
from ...adapters.target import Target
from ...spec import requirements
from ...spec.conventions import NORMATIVE
from ...spec.errors import NormspecError
from ...spec.operators import OPERATORS
from ..cases.description import Description
from ..cases.few_shapes import in_few_shapes
from ..checks.catalogue import checks_of
from ..checks.registry import Check
from ..checks.seams import at_the_seams
from ..judging.library import Library
from ..judging.subject import Subject
from ..judging.verdicts import CaseCount, Result, Verdict
from ..requests.plan import Plan
from ..requests.profiles import foremost
from ..results.report import Report
from .dtypes import PlainestCall, PlainestCalls
from .folding import folded
from .modes import cases_in, checks_in, mode_of
from .order import Order
from .pace import pace
from .platform import described, platform_of
from .progress import Listener, Progress, weight_of
from .shrink import Shrinker
from .subject_run import Chosen, SubjectRun
from .tally import Tally, deviation
from .upstream import seen_upstream

#: One independent piece of a run: an operator in a dtype, for all targets. Nothing is carried over to the next piece.
OperatorInDtype = tuple[str, str]


@attrs.define
class Run:
    """One run in progress; its results so far survive an interruption."""

    plan: Plan
    listener: Listener | None = None
    #: Libraries by operator and kind, shared by several runs; None if each part drops its own when it ends.
    libraries: dict[Any, Library] | None = None
    interrupted: bool = False
    _results: list[Result] = attrs.field(factory=list)
    _shrinker: Shrinker = attrs.field(factory=Shrinker)
    #: Why fewer cases run on a target, by its name; empty if all run.
    paces: dict[str, str] = attrs.field(factory=dict)
    _plainest_calls: PlainestCalls = attrs.field(init=False)
    _taken: list[CaseCount] = attrs.field(factory=list)
    #: The targets that died.
    _lost: dict[str, None] = attrs.field(factory=dict)
    #: Progress: the weight of all bindings judged so far, of all bindings, and of the current binding, and how much of
    #: the current binding is done.
    _done: float = 0.0
    _total: float = 0.0
    _weight: float = 0.0
    _share: float = 0.0
    _violations: int = 0
    #: The violations found before the current binding.
    _earlier_violations: int = 0

    def __attrs_post_init__(self) -> None:
        self._plainest_calls = PlainestCalls(self.subject)

    def report(self, parts: Iterable[OperatorInDtype] | None = None) -> Report:
        """
        Run the parts, by default all. On Ctrl-C return a partial report of the results so far.

        The targets of a part share truths; two parts share nothing.
        """
        started, plan = time.perf_counter(), self.plan
        chosen = self._parts() if parts is None else list(parts)
        self._total = sum(weight_of(first=first) for part in chosen for *_, first in self._bindings(*part))
        try:
            with np.errstate(all="ignore"):  # some cases hold NaN and infinity on purpose
                for part in chosen:
                    self._run_part(*part)
        except KeyboardInterrupt:
            self.interrupted = True
        if plan.store is not None:
            plan.store.flush()
        subjects = tuple(
            {
                **described(t, b, plan.device, plan.conventions, plan.dtypes or t.dtypes),
                "slow": self.paces.get(t.name, ""),
            }
            for t in plan.targets
            for b in t.bindings
        )
        place = Order(subjects, plan.dtypes).place
        return Report(
            results=tuple(sorted(self._results, key=place)),
            profile=plan.profile.name,
            seed=plan.seed,
            subjects=subjects,
            partial=self.interrupted or bool(self._lost),
            lost=() if self.interrupted else tuple(self._lost),
            seconds=time.perf_counter() - started,
            taken=tuple(sorted(self._taken, key=place)),
        )

    def _parts(self) -> list[OperatorInDtype]:
        """Every part of the plan."""
        plan = self.plan
        return [
            (operator, dtype)
            for operator in OPERATORS
            for dtype in DTYPES
            if any(
                dtype in (plan.dtypes or target.dtypes) and any(b.operator == operator for b in target.bindings)
                for target in plan.targets
            )
        ]

    def measure_paces(self) -> None:
        """Measure the pace of each target, unless it is known. The pace decides which cases run on it."""
        plan = self.plan
        for target in plan.targets:
            dtype = next((one for one in plan.dtypes or target.dtypes if one in target.dtypes), None)
            if dtype is not None and target.bindings and target.name not in self.paces:
                _ = self.subject(target, target.bindings[0], dtype)  # it measures the pace

    def requirements(self, target: Target, binding: Binding, dtype: str) -> tuple[str, ...]:
        """The requirements that apply to a binding in a dtype, in both modes."""
        subject = self.subject(target, binding, dtype)
        return tuple(check.requirement for check in self._checks(subject.operator, subject.format))

    # -- one part --------------------------------------------------------------------------------

    def _run_part(self, operator: str, dtype: str) -> None:
        cases = self.plan.profile.cases(operator, self.plan.seed)
        libraries = {} if self.libraries is None else self.libraries
        for target, binding, first in self._bindings(operator, dtype):
            if first:
                self._shrinker = Shrinker()  # so that results of a target do not depend on targets before it
            self._weight, self._share = weight_of(first=first), 0.0
            self._run_binding(target, binding, dtype, cases, libraries, first=first)
            self._done += self._weight

    def _bindings(self, operator: str, dtype: str) -> list[tuple[Target, Binding, bool]]:
        """The bindings of a part, target after target, each with whether it is the first of its target."""
        return [
            (target, binding, not place)
            for target in self.plan.targets
            if dtype in (self.plan.dtypes or target.dtypes)
            for place, binding in enumerate(one for one in target.bindings if one.operator == operator)
        ]

    def _run_binding(
        self,
        target: Target,
        binding: Binding,
        dtype: str,
        cases: Sequence[Description],
        libraries: dict[Any, Library],
        *,
        first: bool,
    ) -> None:
        subject = self.subject(target, binding, dtype)
        if not self._checks(subject.operator, subject.format):  # no check that is asked for applies to this dtype
            return
        plainest = self._plainest_calls.usable(target, binding, dtype)
        made = subject.new_library()
        library = libraries.setdefault((subject.operator, *made.kind), made)
        if not plainest.works:
            self._results += self._unusable(subject, plainest)
            return
        rows: list[Result] = []
        minimum = self.plan.profile.minimum(
            slow=subject.slow,
            own=target.name not in KNOWN,
            first=first,
            foremost=self._is_foremost(target, dtype),
        )
        try:
            self._run_subject(subject, cases, library, rows, minimum, first=first)
        finally:
            self._results += folded(rows)
            subject.forget()

    def subject(self, target: Target, binding: Binding, dtype: str) -> Subject:
        """The subject of this run for a binding in a dtype."""
        platform = platform_of(target, binding, self.plan.device, self.plan.conventions)
        subject = Subject(
            target,
            self._without_required_known(binding),
            dtype,
            device=self.plan.device,
            conventions={**NORMATIVE, **platform.values(dtype), **binding.conventions, **self.plan.conventions},
            flushes=platform.flushes,
            measured=platform.evidence(dtype),
            forward_only=self.plan.has_no_gradients(target.name),
            mode=self.plan.mode_for(target.name) if binding.record.has_modes else "",
            store=self.plan.store,
        )
        slow = bool(self._pace_of(subject))
        thoroughly = self._is_foremost(target, dtype) and binding in first_bindings(target)
        repeated = partial(self.plan.profile.repeated, slow=slow, other=target.name in KNOWN and not thoroughly)
        return attrs.evolve(subject, slow=slow, repeats=repeated(), large_repeats=repeated(large=not thoroughly))

    def _is_foremost(self, target: Target, dtype: str) -> bool:
        """Whether this is the dtype in which the target is checked most thoroughly."""
        checked = [one for one in self.plan.dtypes or () if one in target.dtypes] or target.dtypes
        return dtype == foremost(checked)

    def _pace_of(self, subject: Subject) -> str:
        """Why fewer cases run on the subject's target; empty if all do. Measured once for a target."""
        name = subject.target.name
        if name not in self.paces:
            self.paces[name] = pace(subject, self.plan.slow)
        return self.paces[name]

    def _without_required_known(self, binding: Binding) -> Binding:
        """The binding without known violations of requirements that this run requires: these are not excused."""
        required = self.plan.required
        if not any(known.requirement in required for known in binding.known_violations):
            return binding
        kept = tuple(known for known in binding.known_violations if known.requirement not in required)
        return replace(binding, known_violations=kept)

    # -- one subject -----------------------------------------------------------------------------

    def _checks(self, operator: str, dtype: str, mode: str = "") -> list[Check]:
        wanted = self.plan.requirements
        order = list(requirements())
        found = [
            check
            for check in checks_in(mode, checks_of(operator))
            if dtype in check.dtypes and (wanted is None or check.requirement in wanted)
        ]
        return sorted(found, key=lambda check: order.index(check.requirement))

    def checks_on(self, subject: Subject) -> list[Check]:
        """The checks that run on a subject in its mode, at the seams of a layer that has them."""
        found = self._checks(subject.operator, subject.format, subject.mode)
        return found if subject.binding.seams is None else [at_the_seams(check) for check in found]

    def _unusable(self, subject: Subject, plainest: PlainestCall) -> list[Result]:
        self._note_loss(subject, lost=plainest.lost)
        error, unsupported = (plainest.reason, "") if plainest.lost else ("", plainest.reason)
        checks = self._checks(subject.operator, subject.format)
        tallies = [
            Tally(check, self.plan.level(check.requirement), error=error, unsupported=unsupported) for check in checks
        ]
        return [self._result(subject, tally, subject.new_library()) for tally in tallies]

    def _run_subject(
        self,
        subject: Subject,
        cases: Sequence[Description],
        library: Library,
        results: list[Result],
        minimum: int | None = None,
        *,
        first: bool = True,
    ) -> None:
        """
        Run every check over the cases and append a result for each. Results so far survive Ctrl-C.

        With ``minimum`` only some cases run: enough for every check to run on that many. ``first`` says that this is
        the first binding of its operator.
        """
        own, shape = subject.target.name not in KNOWN, subject.binding.fixed.shape
        if minimum is not None and subject.slow and own and not shape:  # a fixed shape is already a single one
            cases = [few for description in cases if (few := in_few_shapes(description)) is not None]
        mode = mode_of(subject, self.plan.mode_for(subject.target.name), cases, library)
        subject.mode = mode.name
        checks = self.checks_on(subject)
        tallies = [Tally(check, self.plan.level(check.requirement)) for check in checks]
        self._earlier_violations = self._violations
        running = SubjectRun(
            subject,
            tallies,
            library,
            most=minimum,
            most_of_a_rank=None if own else self.plan.profile.calls_often,
            note=lambda share: self._note(subject, tallies, share),
        )
        try:
            running.over(Chosen.of(subject, checks, cases_in(mode.name, cases), library, minimum, first=first))
            place = (subject.target.name, subject.binding.name, subject.operator, subject.dtype)
            self._taken.append(CaseCount(*place, running.cases_run, dict(running.declined), mode.name, mode.reason))
            for tally in tallies:
                results.append(self._result(subject, tally, library))
        except NormspecError:
            raise
        except KeyboardInterrupt:
            rest = tallies[len(results) :]
            stopped = [self._result(subject, tally, library, complete=False) for tally in rest if tally.judged]
            results += map(_of_a_stopped_run, stopped)
            raise
        except Exception as error:  # a defect of normspec: exceptions of a target never get here
            for tally in tallies[len(results) :]:
                tally.note_defect(error)
                results.append(self._result(subject, tally, library, complete=False))

    def _note(self, subject: Subject, tallies: Sequence[Tally], share: float) -> None:
        """Note what the checks of a subject have found, when this share of its cases is done."""
        self._note_loss(subject, lost=any(tally.lost for tally in tallies))
        self._share = share
        self._violations = self._earlier_violations + sum(tally.verdict is Verdict.FAIL for tally in tallies)
        self._tell(subject)

    def _note_loss(self, subject: Subject, *, lost: bool) -> None:
        if lost:
            self._lost[subject.target.name] = None

    def _tell(self, subject: Subject, doing: str = "") -> None:
        if self.listener is not None:
            target, binding = subject.target.name, subject.binding.name
            words = f"{target} {subject.operator} {subject.dtype}" + (f" {binding}" if binding != target else "")
            done = self._done + self._weight * self._share
            told = f"{words}: {doing}" if doing else words
            self.listener(Progress(done, self._total, told, self._violations))

    # -- one result ------------------------------------------------------------------------------

    def _result(self, subject: Subject, tally: Tally, library: Library, *, complete: bool = True) -> Result:
        """Turn a tally into a result; unless it is complete, a violation is not shrunk."""
        finding, reason, description = tally.violation, tally.error or tally.unsupported, tally.description
        verdict, upstream = tally.verdict, None
        if verdict.is_violation and finding is not None:
            reason = finding.note
            shrinks = self.plan.explain and (verdict is Verdict.FAIL or self.plan.shrink_advice)
            if shrinks and complete:
                self._tell(subject, f"shrinking {tally.check.requirement}")
                try:
                    shown = self._shrinker.shrink(subject, tally, library)
                    finding, description = shown.finding, shown.description
                    if subject.target.name not in KNOWN:
                        upstream = seen_upstream(subject, tally.check, finding, library.case(description))
                except NormspecError:  # the user's own mistake
                    raise
                except Exception as error:  # a defect of normspec: the violation is reported without shrinking
                    tally.note_defect(error)
        elif verdict is Verdict.DEVIATES:
            finding, reason = tally.known, deviation(subject, tally)
        elif verdict is Verdict.PASS:
            reason = ""
        elif verdict is Verdict.NOT_EXERCISED and complete:
            reason = "no case that it takes could judge it"
            reason = f"its cases violate {tally.blocked_by}, which it rests on" if tally.blocked_by else reason
        return tally.result(subject, finding, reason=reason, violated_on=description, upstream=upstream)


def _of_a_stopped_run(result: Result) -> Result:
    """A result of a run that was stopped: what held on the cases so far is no pass, and may not hold on the rest."""
    if result.verdict not in (Verdict.PASS, Verdict.DEVIATES):
        return result
    reason = "it held on the cases so far, and the run was stopped"
    return attrs.evolve(result, verdict=Verdict.NOT_EXERCISED, reason=reason, counterexample=None)


def first_bindings(target: Target) -> list[Binding]:
    """The first binding of each operator. The others wrap the same code."""
    return list({binding.operator: binding for binding in reversed(target.bindings)}.values())
