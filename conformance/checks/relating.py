"""Relations: what is evaluated more than once, what must hold of it, and where that is judged."""

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
from .received import Claim, Run

#: The cases of a relation's calls, by what its claims call them; None where a case is not for it.
Calls = Callable[[Case], "Mapping[str, Case] | None"]
#: What must hold of the results.
Claims = Callable[[Mapping[str, Run]], Iterable[Claim]]


@attrs.frozen
class Relation:
    """Several calls of a case, and pairs of numbers made of their results that are the same."""

    #: What it is about: an aspect of the formula.
    name: str
    calls: Calls
    claims: Claims
    #: Whether the calls are without parameters, so that y is xhat.
    bare: bool = True
    #: Those of the calls that are made afresh, because what another call leaves behind must not show in them.
    fresh: frozenset[str] = frozenset()
    #: Another relation, and the case made of the case on which it has to hold for this one to be judged: where the
    #: other aspect is wrong, nothing is said of this one.
    given: tuple[Relation, Callable[[Case], Case | None]] | None = None
    #: The requirements that say of each operator that it holds.
    says: tuple[str, ...] = ()

    def judged(self, subject: Subject, case: Case) -> Iterator[Finding]:
        """A finding for each claim; none where the case is not for it, one that judges nothing while another fails."""
        with contextlib.suppress(
            TargetRaised, BadOutput, Unsupported
        ):  # a target that is lost on it is not called again
            _ = subject.observe(case).outputs
        with np.errstate(all="ignore"):  # a wrong result may be anything
            if self.given is None:
                yield from self._findings(subject, case)
                return
            first, make = self.given
            place = case.derived(f"given: {first.name}", make)
            if place is None:
                return
            if any(found.violated for found in first._findings(subject, place)):
                awaits = first._requirement(subject.operator)
                yield Finding(case, violated=False, judged=False, awaits=awaits)
            else:
                yield from self._findings(subject, case)

    def _requirement(self, operator: str) -> str:
        """The one of an operator that says that it holds."""
        return next(one for one in self.says if one.startswith(f"{OPERATORS[operator].prefix}-"))

    def _findings(self, subject: Subject, case: Case) -> Iterator[Finding]:
        received = self._received(subject, case)
        if received is None:
            return
        known: dict[bool, list[Claim]] = {}

        def claims(normative: bool) -> list[Claim]:
            if normative not in known:
                runs = {name: Run.of(subject, one, y, normative=normative) for name, (one, y) in received.items()}
                known[normative] = list(self.claims(runs))
            return known[normative]

        for place, claim in enumerate(claims(False)):
            yield subject.finding(
                claim.case, claim.name, lambda normative, p=place: claims(normative)[p].compared(), claim.note
            )

    def _received(self, subject: Subject, case: Case) -> dict[str, tuple[Case, np.ndarray]] | None:
        """Each call's case and y, in the first form of no parameters that the target takes."""
        forms = case.derived("without parameters", without_parameters) if self.bare else (case,)
        for form in forms:
            calls = self.calls(form)
            if calls is None:
                return None
            subject.ahead(case, self._asking(subject, calls))
            try:
                return {name: (one, self._y(subject, name, one)) for name, one in calls.items()}
            except (Unsupported, TargetRaised):
                if form is forms[-1]:
                    raise
        return None

    def _asking(self, subject: Subject, calls: Mapping[str, Case]) -> Iterator[Callable[[], object]]:
        """What they ask for, as far as it is not known."""
        for name, case in calls.items():
            if name in self.fresh or subject.observe(case).lacks_outputs:
                yield partial(subject.outputs, case)

    def _y(self, subject: Subject, name: str, case: Case) -> np.ndarray:
        return (subject.outputs(case) if name in self.fresh else subject.observe(case).outputs)["y"]
