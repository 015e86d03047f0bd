"""The engine: runs the checks of each subject over the cases, and turns what they find into results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ..adapters.binding import Binding, Target
from ..adapters.conventions import CONVENTIONS
from ..adapters.errors import TargetRaised
from ..spec import requirement, requirements
from .cases.case import Description
from .cases.deck import deck
from .cases.strategy import generate
from .checks.registry import Check, checks_of
from .checks.seams import at_the_seams
from .library import Library, enough, fitted
from .profiles import Profile
from .progress import Listener, Progress
from .shrink import Shrinker, passes_under
from .subject import CALL_FAILED, Subject
from .tally import Tally
from .verdicts import Report, Result, Verdict


@attrs.frozen
class Plan:
    """What one run does."""

    targets: Sequence[Target]
    #: None: every dtype that the target is written for.
    dtypes: tuple[str, ...] | None
    device: str
    #: Conventions declared by the user, over those of each binding.
    conventions: dict[str, str]
    profile: Profile
    seed: int
    forward_only: bool = False
    #: Whether violations are shrunk and explained; a self-test only counts them.
    explain: bool = True
    #: Only these requirements, where given.
    requirements: frozenset[str] | None = None


@attrs.define
class Run:
    """One run in progress; what it has established so far survives an interruption."""

    plan: Plan
    listener: Listener | None = None
    _results: list[Result] = attrs.field(factory=list)
    _subjects: list[dict[str, Any]] = attrs.field(factory=list)
    _shrinker: Shrinker = attrs.field(factory=Shrinker)
    _done: int = 0
    _total: int = 0
    _failing: int = 0

    def report(self) -> Report:
        """Run everything; on Ctrl-C return what was established, as a partial report."""
        started, partial = time.perf_counter(), False
        try:
            with np.errstate(all="ignore"):  # NaN and infinity are handed over on purpose
                for target in self.plan.targets:
                    self._run_target(target)
        except KeyboardInterrupt:
            partial = True
        return Report(
            results=tuple(self._results),
            profile=self.plan.profile.name,
            seed=self.plan.seed,
            subjects=tuple(self._subjects),
            partial=partial,
            seconds=time.perf_counter() - started,
        )

    # -- one target ------------------------------------------------------------------------------

    def _run_target(self, target: Target) -> None:
        dtypes = self.plan.dtypes or target.dtypes
        for binding in target.bindings:
            self._subjects.append(_described(target, binding, self.plan))
        operators = tuple(dict.fromkeys(binding.operator for binding in target.bindings))
        for operator in operators:
            bindings = [b for b in target.bindings if b.operator == operator]
            cases = self._descriptions(operator)
            self._total += len(cases) * len(bindings) * len(dtypes)
            taken = self._usable_dtypes(target, bindings[0], dtypes)
            rows: dict[str, list[Result]] = {binding.name: [] for binding in bindings}
            try:
                for dtype in dtypes:
                    library = Library(dtype)
                    for binding in bindings:
                        subject = self._subject(target, binding, dtype)
                        if dtype in taken:
                            rows[binding.name] += self._lacking(subject, taken[dtype])
                        else:
                            further = self.plan.profile.further if binding is not bindings[0] else None
                            self._run_subject(subject, cases, library, rows[binding.name], further)
            finally:
                for results in rows.values():
                    self._results += results

    def _descriptions(self, operator: str) -> list[Description]:
        plan = self.plan
        fixed = deck(operator, plan.profile.name, plan.seed)
        return fixed + generate(operator, plan.seed, plan.profile.generated)

    def _subject(self, target: Target, binding: Binding, dtype: str) -> Subject:
        conventions = {key: values[0] for key, values in CONVENTIONS.items()}
        return Subject(
            target,
            binding,
            dtype,
            device=self.plan.device,
            conventions={**conventions, **binding.conventions, **self.plan.conventions},
            forward_only=self.plan.forward_only,
            repeats=self.plan.profile.repeats,
        )

    def _usable_dtypes(self, target: Target, binding: Binding, dtypes: Sequence[str]) -> dict[str, str]:
        """Return, for each dtype whose plainest call raises while another's works, the reason."""
        failed: dict[str, str] = {}
        worked = False
        others = [d for d in target.dtypes if d not in dtypes]
        for dtype in (*dtypes, *others):
            if dtype not in target.dtypes:
                failed[dtype] = f"{target.name} has no {dtype}"
                continue
            plain = Description(
                binding.operator, 4, (("normal", 0), ("normal", 1)), gamma="mixed", beta="mixed", recipe="leaf"
            )
            fit = fitted(plain, binding)
            if fit is None:
                continue
            subject = self._subject(target, binding, dtype)
            try:
                _ = subject.observe(Library(dtype).case(fit)).outputs
            except TargetRaised as raised:
                failed[dtype] = f"the plainest call raises {raised}"
            except CALL_FAILED:
                worked = True  # it returned something: what, is judged
            else:
                worked = True
            if worked and dtype in others:
                break
        return failed if worked else {d: r for d, r in failed.items() if d not in target.dtypes}

    # -- one subject -----------------------------------------------------------------------------

    def _checks(self, operator: str, dtype: str) -> list[Check]:
        wanted = self.plan.requirements
        order = list(requirements())
        found = [
            check
            for check in checks_of(operator)
            if dtype in check.dtypes and (wanted is None or check.requirement in wanted)
        ]
        return sorted(found, key=lambda check: order.index(check.requirement))

    def _lacking(self, subject: Subject, reason: str) -> list[Result]:
        self._done += len(self._descriptions_of(subject))
        tallies = [Tally(check, unsupported=reason) for check in self._checks(subject.operator, subject.dtype)]
        return [self._result(subject, tally, [], Library(subject.dtype)) for tally in tallies]

    def _descriptions_of(self, subject: Subject) -> list[Description]:
        return deck(subject.operator, self.plan.profile.name, self.plan.seed)

    def _run_subject(
        self,
        subject: Subject,
        cases: Sequence[Description],
        library: Library,
        results: list[Result],
        further: int | None = None,
    ) -> None:
        """
        Run every check over the cases and append a result for each; what is known survives Ctrl-C.

        ``further``: only as many cases as put every check to so many of them.
        """
        checks = self._checks(subject.operator, subject.dtype)
        if subject.binding.seams is not None:
            checks = [at_the_seams(check) for check in checks]
        tallies = [Tally(check) for check in checks]
        fitting = list(dict.fromkeys(fit for d in cases if (fit := fitted(d, subject.binding)) is not None))
        whole = fitting  # which class a failure would pass under is a matter of all cases
        if further is not None:
            fitting = enough(fitting, checks, library, further)
        self._total += len(fitting) - len(cases)
        before = len(results)
        try:
            for description in fitting:
                self._run_case(subject, tallies, description, library)
                self._done += 1
                self._tell(subject)
                if self._hopeless(tallies):
                    break
            for tally in tallies:
                if tally.violation is not None:
                    self._tell(subject, f"shrinking {tally.check.requirement}")
                results.append(self._result(subject, tally, whole, library))
        except KeyboardInterrupt:
            rest = tallies[len(results) - before :]
            results += [self._result(subject, tally, None, library) for tally in rest if tally.judged]
            raise

    def _run_case(self, subject: Subject, tallies: list[Tally], description: Description, library: Library) -> None:
        case = library.case(description)
        for tally in tallies:
            if tally.violation is None and tally.check.when(case):
                tally.run(subject, case, description)
                if tally.violation is not None:
                    self._failing += 1
                    self._tell(subject)

    @staticmethod
    def _hopeless(tallies: list[Tally]) -> bool:
        """Whether the plain call fails and nothing can ever be judged: the rest would say it again."""
        failed = any(t.violation is not None and t.check.requirement in ("CM-T1", "CM-T2") for t in tallies)
        judged = any(t.judged and t.violation is None for t in tallies if t.check.requirement[:4] != "CM-T")
        return failed and not judged and sum(bool(t.error) for t in tallies) > 3

    def _tell(self, subject: Subject, doing: str = "") -> None:
        if self.listener is not None:
            words = f"{subject.binding.name} {subject.dtype}" + (f": {doing}" if doing else "")
            self.listener(Progress(self._done, self._total, words, self._failing))

    # -- one result ------------------------------------------------------------------------------

    def _result(
        self,
        subject: Subject,
        tally: Tally,
        descriptions: Sequence[Description] | None,
        library: Library,
    ) -> Result:
        """Turn a tally into a result; without descriptions a violation is told as it was found."""
        level = str(requirement(tally.check.requirement).level.value)
        finding, under, reason = tally.violation, (), tally.unsupported or tally.error
        verdict = tally.verdict
        expected = subject.binding.expected.get(tally.check.requirement, "")
        if verdict is Verdict.FAIL and finding is not None:
            reason = finding.note
            if expected:
                verdict, reason = Verdict.DEVIATES, expected
            elif self.plan.explain and descriptions is not None:
                finding = self._shrinker.shrink(subject, tally, library)
                under = passes_under(subject, tally, list(descriptions), library)
        elif verdict is Verdict.DEVIATES:
            reason = _deviation(subject, tally)
        elif verdict is Verdict.PASS:
            reason = ""
        elif verdict is Verdict.NOT_EXERCISED and descriptions is not None:
            reason = "no case that this binding takes could judge it"
        return Result(
            target=subject.target.name,
            binding=subject.binding.name,
            op=subject.operator,
            requirement=tally.check.requirement,
            level=level,
            dtype=subject.dtype,
            device=subject.device,
            mode="eager",
            verdict=verdict,
            ratio=tally.ratio,
            cases=tally.judged,
            reason=reason,
            counterexample=finding.counterexample() if finding is not None else None,
            passes_under=under,
        )


def _deviation(subject: Subject, tally: Tally) -> str:
    """The declarations that a result rests on; the reasons for a binding's own stand with the subject."""
    own = subject.binding.conventions
    return ", ".join(
        f"{key}={subject.conventions[key]} (declared by the {'binding' if key in own else 'caller'})"
        for key in sorted(tally.deviates)
    )


def _described(target: Target, binding: Binding, plan: Plan) -> dict[str, Any]:
    declared = {**binding.conventions, **plan.conventions}
    return {
        "target": target.name,
        "binding": binding.name,
        "op": binding.operator,
        "framework": target.framework,
        "version": target.version,
        "device": plan.device,
        "conventions": {k: v for k, v in declared.items() if v != CONVENTIONS[k][0]},
        "reasons": {k: v for k, v in binding.reasons.items() if k in declared},
    }
