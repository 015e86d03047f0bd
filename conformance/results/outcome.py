"""The outcome of a run: its results, and the conclusions for all targets together and for each alone."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from ...spec.errors import UnknownTarget, choices
from ..diagnosis.cause import Cause
from ..judging.verdicts import CaseCount, Deviation, Result, Verdict
from ..reporting.versions import versions as versions_here
from ..reporting.versions import with_targets
from ..reproduce.reproducer import Reproducer
from .expectation import Expectation
from .left_out import LeftOut

One = TypeVar("One", bound="Outcome")

#: The verdicts on what was judged.
JUDGED = (Verdict.PASS, Verdict.FAIL, Verdict.ADVICE, Verdict.DEVIATES)

#: The note of a report whose verdicts are all there, and whose causes are not, because of Ctrl-C.
NOT_EXPLAINED = "interrupted before its violations were explained"


@attrs.frozen
class Outcome:
    """All results of one run. Report (report.py) adds text, JSON and exceptions."""

    results: tuple[Result, ...]
    profile: str
    seed: int
    #: One entry for each binding that was run: the framework's version, its declared conventions, and under
    #: "passes_under" the declaration that would make it conform, if there is one.
    subjects: tuple[Mapping[str, Any], ...] = ()
    #: The mistakes in the targets, each with the violations that it explains.
    causes: tuple[Cause, ...] = ()
    #: The scripts that were asked for: one for each cause and for each violation without a cause.
    reproducers: tuple[Reproducer, ...] = ()
    #: True if the run was interrupted or a target died, so that some results are missing.
    partial: bool = False
    #: The targets that died, if nothing else makes the outcome partial. The results of other targets are complete.
    lost: tuple[str, ...] = ()
    #: The targets for which the search for a declaration ended at its time limit: another run may find one.
    cut_short: tuple[str, ...] = ()
    #: Duration of judging, without the import of the targets.
    seconds: float = 0.0
    #: Tracebacks of defects of normspec that belong to no requirement.
    defects: tuple[str, ...] = ()
    #: Notes on the run, such as machines of a cluster that did not judge, and why.
    notes: tuple[str, ...] = ()
    #: For each binding, how many cases it took, and the mode in which it was judged.
    taken: tuple[CaseCount, ...] = ()
    #: The only requirements and bindings of frameworks that were judged, in the words of the caller; empty means all.
    only: tuple[str, ...] = ()
    binding: tuple[str, ...] = ()
    #: The requirements that were a MUST in this run whatever their pages say, in the words of the caller.
    require: tuple[str, ...] = ()
    #: The report whose failed cases were judged again; empty for a normal run.
    replayed: str = ""
    #: Its failed cases that were not judged again, by target and reason.
    not_replayed: tuple[LeftOut, ...] = ()
    #: The expected failures, and whether each occurred.
    expected: tuple[Expectation, ...] = ()
    #: The versions of Python and of the packages that judge, and Python's name for the machine.
    versions: Mapping[str, str] = attrs.field(factory=versions_here)
    platform: str = attrs.field(factory=platform.platform)

    def mode_of(self, target: str, op: str, binding: str, dtype: str) -> str:
        """The only mode that a binding was judged in; empty for both modes and for operators without modes."""
        place = target, op, binding, dtype
        return next((one.mode for one in self.taken if (one.target, one.op, one.binding, one.dtype) == place), "")

    @property
    def all_versions(self) -> dict[str, str]:
        """The versions of Python and of all packages that the run depends on, those of its targets among them."""
        return with_targets(self.versions, self.subjects)

    @property
    def stopped(self) -> bool:
        """Whether something other than the loss of a target made it partial, such as Ctrl-C."""
        return self.partial and not self.lost

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets, in the order of the run."""
        names = [str(one["target"]) for one in self.subjects if "target" in one]
        return tuple(dict.fromkeys([*names, *(result.target for result in self.results)]))

    def target(self: One, name: str) -> One:
        """
        The report on one target alone.

        A defect of normspec that belongs to no requirement may concern any target, so it is in each target's report.
        Raises UnknownTarget, which lists the names.
        """
        if name not in self.targets:
            raise UnknownTarget(f"the report has no target {name!r}{choices(name, self.targets)}")
        return attrs.evolve(
            self,
            results=tuple(one for one in self.results if one.target == name),
            subjects=tuple(one for one in self.subjects if one.get("target") == name),
            causes=tuple(one for one in self.causes if one.target == name),
            reproducers=tuple(one for one in self.reproducers if one.target == name),
            taken=tuple(one for one in self.taken if one.target == name),
            partial=self.partial and (not self.lost or name in self.lost),
            lost=tuple(one for one in self.lost if one == name),
            cut_short=tuple(one for one in self.cut_short if one == name),
            expected=tuple(one for one in self.expected if one.target == name),
            not_replayed=tuple(one for one in self.not_replayed if one.target == name),
        )

    @property
    def share(self) -> float:
        """The share of cases that the bindings took, over all bindings and dtypes; 1 if there were no cases."""
        cases = sum(one.cases for one in self.taken)
        return 1 - sum(sum(one.declined.values()) for one in self.taken) / cases if cases else 1.0

    def failures(self) -> tuple[Result, ...]:
        """The violations of MUST requirements."""
        return tuple(r for r in self.results if r.verdict is Verdict.FAIL)

    def advice(self) -> tuple[Result, ...]:
        """The violations of SHOULD requirements."""
        return tuple(r for r in self.results if r.verdict is Verdict.ADVICE)

    def unseen(self) -> tuple[tuple[Result, Deviation], ...]:
        """The known violations that were tested and did not show, each with the result it belongs to."""
        return tuple((result, one) for result in self.results for one in result.known if not one.shown)

    def unmet(self) -> tuple[Expectation, ...]:
        """The expected failures that are wrong: they pass, match nothing, or are past their end date."""
        return tuple(one for one in self.expected if one.wrong)

    def errors(self) -> tuple[Result, ...]:
        """The requirements that could not be judged because the target raised."""
        return tuple(r for r in self.results if r.verdict is Verdict.ERROR)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The targets for which nothing was judged."""
        judged = {r.target for r in self.results if r.verdict in JUDGED}
        return tuple(name for name in self.targets if name not in judged)

    @property
    def unjudged_layers(self) -> tuple[str, ...]:
        """The layers of a model that declined every call, so that nothing is known of them."""
        layers = {(one["target"], one["binding"]) for one in self.subjects if one.get("layers")}
        taken: dict[tuple[str, str], int] = {}
        for one in self.taken:
            place = one.target, one.binding
            if place in layers:
                taken[place] = taken.get(place, 0) + one.cases - sum(one.declined.values())
        return tuple(name for (_, name), cases in taken.items() if not cases)

    @property
    def conforms(self) -> bool:
        """Whether no MUST is violated, something was judged for each target, and the run is complete."""
        judged = bool(self.targets) and not self.unchecked
        wrong = self.failures() or self.errors() or self.defects or self.unmet()
        left_out = self.partial or self.not_replayed or self.unjudged_layers
        return judged and not wrong and not left_out

    @property
    def exit_status(self) -> int:
        """0 conforms, 1 a MUST is violated, 2 nothing was checked, 3 checked only in part (some targets, or errors)."""
        if self.partial:
            return 3
        if self.failures() or self.unmet():
            return 1
        if self.errors() or self.defects:
            return 3
        if len(self.unchecked) == len(self.targets):
            return 2
        return 3 if self.unchecked or self.not_replayed or self.unjudged_layers else 0

    def counts(self) -> dict[str, int]:
        """Number of results by verdict."""
        tally = {verdict.value: 0 for verdict in Verdict}
        for result in self.results:
            tally[result.verdict.value] += 1
        return tally
