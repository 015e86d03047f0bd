"""Relations: several calls of a case, what must hold of their results, and where that is judged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import attrs
import numpy as np

from ...spec.errors import BadOutput, TargetRaised, Unsupported
from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .derived import without_parameters
from .received import Claim, RelatedCall

#: The cases of a relation's calls, by the names that its claims use; None if it does not apply to a case.
Calls = Callable[[Case], "Mapping[str, Case] | None"]
#: What must hold of the results.
Claims = Callable[[Mapping[str, RelatedCall]], Iterable[Claim]]


@attrs.frozen
class Relation:
    """Several calls of a case, and pairs of numbers from their results that must be equal."""

    #: The aspect of the formula that it is about.
    name: str
    calls: Calls
    claims: Claims
    #: Whether the calls are without parameters, so that y is xhat.
    without_parameters: bool = True
    #: The calls that are made afresh, so that nothing left behind by another call shows in them.
    called_anew: frozenset[str] = frozenset()
    #: Another relation, and how to make the case on which it must hold first: where that other aspect is wrong, this
    #: relation says nothing.
    precondition: tuple[Relation, Callable[[Case], Case | None]] | None = None
    #: For each operator, the requirement that states the relation.
    requirements: tuple[str, ...] = ()

    def judged(self, subject: Subject, case: Case) -> Iterator[Finding]:
        """
        Yield a finding for each claim; none if the relation does not apply to the case.

        If the precondition is violated, yield one finding that judges nothing.
        """
        with contextlib.suppress(
            TargetRaised, BadOutput, Unsupported
        ):  # a target that fails on this case is not called again
            _ = subject.observe(case).outputs
        with np.errstate(all="ignore"):  # a wrong result may be anything
            if self.precondition is None:
                yield from self._findings(subject, case)
                return
            first, make = self.precondition
            place = case.derived(f"given: {first.name}", make)
            if place is None:
                return
            if any(found.violated for found in first._findings(subject, place)):
                blocked_by = first._requirement(subject.operator)
                yield Finding(case, violated=False, judged=False, blocked_by=blocked_by)
            else:
                yield from self._findings(subject, case)

    def _requirement(self, operator: str) -> str:
        """The requirement of an operator that states this relation."""
        return next(one for one in self.requirements if one.startswith(f"{OPERATORS[operator].prefix}-"))

    def _findings(self, subject: Subject, case: Case) -> Iterator[Finding]:
        received = self._received(subject, case)
        if received is None:
            return
        known: dict[bool, list[Claim]] = {}

        def claims(normative: bool) -> list[Claim]:
            if normative not in known:
                runs = {
                    name: RelatedCall.of(subject, one, y, normative=normative) for name, (one, y) in received.items()
                }
                known[normative] = list(self.claims(runs))
            return known[normative]

        for place, claim in enumerate(claims(False)):
            found = subject.finding(
                claim.case, claim.name, lambda normative, p=place: claims(normative)[p].compared(), claim.note
            )
            if claim.exactly is None:
                yield subject.related(found, claim.left.value.shape)
            else:
                yield attrs.evolve(found, exact=float(claim.exactly[found.index])) if found.violated else found

    def _received(self, subject: Subject, case: Case) -> dict[str, tuple[Case, np.ndarray]] | None:
        """Each call's case and y, in the first form without parameters that the target takes."""
        forms = case.derived("without parameters", without_parameters) if self.without_parameters else (case,)
        for form in forms:
            calls = self.calls(form)
            if calls is None:
                return None
            subject.prefetch(case, self._unknown_results(subject, calls))
            try:
                return {name: (one, self._y(subject, name, one)) for name, one in calls.items()}
            except (Unsupported, TargetRaised):
                if form is forms[-1]:
                    raise
        return None

    def _unknown_results(self, subject: Subject, calls: Mapping[str, Case]) -> Iterator[Callable[[], object]]:
        """The calls whose results are not known yet."""
        for name, case in calls.items():
            if name in self.called_anew or subject.observe(case).lacks_outputs:
                yield partial(subject.outputs, case)

    def _y(self, subject: Subject, name: str, case: Case) -> np.ndarray:
        return (subject.outputs(case) if name in self.called_anew else subject.observe(case).outputs)["y"]
