"""The outcome of a run: all of its results, and what they amount to, for all targets together and for each alone."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from ...spec.errors import UnknownTarget, choices
from ..diagnosis.cause import Cause
from ..judging.verdicts import Deviation, Result, Taken, Verdict
from ..reporting.versions import versions as versions_here
from ..reproduce.reproducer import Reproducer
from .expectation import Expectation

One = TypeVar("One", bound="Outcome")

#: The verdicts of what was judged.
_JUDGED = (Verdict.PASS, Verdict.FAIL, Verdict.ADVICE, Verdict.DEVIATES)


@attrs.frozen
class Outcome:
    """All results of one run. A Report is one that can be read and written (report.py)."""

    results: tuple[Result, ...]
    profile: str
    seed: int
    #: What was run: one line a binding, with the framework's version, its declared conventions, and under
    #: "passes_under" what it would have to declare where that would make it conform.
    subjects: tuple[Mapping[str, Any], ...] = ()
    #: What the authors of the targets did wrongly, and which violations that explains.
    causes: tuple[Cause, ...] = ()
    #: The scripts that were asked for, one for each cause and for each violation without one.
    reproducers: tuple[Reproducer, ...] = ()
    #: True when the run was interrupted or a target died: what is here was established, the rest was not.
    partial: bool = False
    #: The targets that died, where nothing else makes it partial: what is here of the others is all there is.
    lost: tuple[str, ...] = ()
    #: How long judging took; importing the targets is not counted.
    seconds: float = 0.0
    #: Tracebacks of defects of normspec that belong to no requirement.
    defects: tuple[str, ...] = ()
    #: What is to be known of how it came about: machines of a cluster that did not judge, and why.
    notes: tuple[str, ...] = ()
    #: What each binding took of its cases, and in which mode it was judged.
    taken: tuple[Taken, ...] = ()
    #: What alone was judged, in the words of the caller: requirements, and bindings of frameworks; empty for all.
    only: tuple[str, ...] = ()
    binding: tuple[str, ...] = ()
    #: What was a MUST in this run whatever its page says, in the words of the caller.
    require: tuple[str, ...] = ()
    #: The report whose failed cases alone were judged; empty for a run on cases of its own.
    replayed: str = ""
    #: The expected failures that it was held to, and what became of each.
    expected: tuple[Expectation, ...] = ()
    #: The versions of Python and of the packages that it depends on, and the machine, as Python names it.
    versions: Mapping[str, str] = attrs.field(factory=versions_here)
    platform: str = attrs.field(factory=platform.platform)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets, in the order of the run."""
        names = [str(one["target"]) for one in self.subjects if "target" in one]
        return tuple(dict.fromkeys([*names, *(result.target for result in self.results)]))

    def target(self: One, name: str) -> One:
        """
        The report on one target alone.

        A defect of normspec that belongs to no requirement may have been met with any target, and so stands in each
        one's report. Raises UnknownTarget, which lists the names.
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
            expected=tuple(one for one in self.expected if one.target == name),
        )

    @property
    def share(self) -> float:
        """The share of the cases that was taken, of all bindings and dtypes together; 1 where there was none."""
        cases = sum(one.cases for one in self.taken)
        return 1 - sum(sum(one.declined.values()) for one in self.taken) / cases if cases else 1.0

    def failures(self) -> tuple[Result, ...]:
        """The violations of MUST requirements."""
        return tuple(r for r in self.results if r.verdict is Verdict.FAIL)

    def advice(self) -> tuple[Result, ...]:
        """The violations of SHOULD requirements."""
        return tuple(r for r in self.results if r.verdict is Verdict.ADVICE)

    def unseen(self) -> tuple[tuple[Result, Deviation], ...]:
        """The known violations that were put to the test and did not show, each with the result it belongs to."""
        return tuple((result, one) for result in self.results for one in result.known if not one.shown)

    def unmet(self) -> tuple[Expectation, ...]:
        """The expected failures that are wrong: they pass, match nothing, or are past what they were expected until."""
        return tuple(one for one in self.expected if one.wrong)

    def errors(self) -> tuple[Result, ...]:
        """The requirements on which the target raised where nothing could be judged."""
        return tuple(r for r in self.results if r.verdict is Verdict.ERROR)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The targets of which nothing was judged."""
        judged = {r.target for r in self.results if r.verdict in _JUDGED}
        return tuple(name for name in self.targets if name not in judged)

    @property
    def conforms(self) -> bool:
        """Whether something was judged of each target, everything asked for was, and no MUST is violated."""
        judged = bool(self.targets) and not self.unchecked
        wrong = self.failures() or self.errors() or self.defects or self.unmet()
        return judged and not self.partial and not wrong

    @property
    def exit_status(self) -> int:
        """0 conforms, 1 some MUST fails, 2 nothing was checked, 3 checked only in part, as where a target was not."""
        if self.partial:
            return 3
        if self.failures() or self.unmet():
            return 1
        if self.errors() or self.defects:
            return 3
        if len(self.unchecked) == len(self.targets):
            return 2
        return 3 if self.unchecked else 0

    def counts(self) -> dict[str, int]:
        """How many results have each verdict."""
        tally = {verdict.value: 0 for verdict in Verdict}
        for result in self.results:
            tally[result.verdict.value] += 1
        return tally
