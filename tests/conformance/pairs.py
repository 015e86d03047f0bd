"""Pairs of faults in one function, drawn over all operators; both faults show."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import attrs
import numpy as np

from normspec import Report
from normspec.conformance.diagnosis.candidates import Candidate, paired
from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.judging.subject import Subject
from normspec.conformance.requests.implementation_targets import implementation_target
from normspec.spec.operators import OPERATORS

from .runs import run

#: Pairs that are drawn for each operator.
_EACH = 7


@attrs.frozen(eq=False)
class Pair:
    """A function with two faults."""

    function: Candidate

    @property
    def names(self) -> tuple[str, ...]:
        """The names of both, in alphabetical order."""
        return tuple(sorted(self.function.names))

    @property
    def requirements(self) -> frozenset[str]:
        """The requirements that both are mistakes against."""
        return frozenset(fault.requirement for fault in self.function.faults)

    def report(self, *, explain: bool) -> Report:
        """Its report in float32: on these requirements only, or on all of them with the causes."""
        subject, implementation = self.function.target_subject, attrs.evolve(self.function).implementation
        target = implementation_target("it", subject.operator, implementation)
        only = None if explain else self.requirements
        with np.errstate(all="ignore"):
            return run(target, requirements=only, required=self.requirements, explain=explain)

    @property
    def shows(self) -> bool:
        """Whether it violates both requirements that the single faults must violate, and these differ."""
        violated = {one.requirement for one in self.report(explain=False).results if one.verdict.is_violation}
        return len(self.requirements) == 2 and violated == self.requirements


def together(first: Fault, second: Fault) -> Pair | None:
    """A function with both faults; None where one undoes the other."""
    target = implementation_target("it", first.operator, first.build())
    like = Subject(target, target.bindings[0], "float32")
    both = paired(Candidate((first,), like), Candidate((second,), like))
    return None if both is None else Pair(both)


def drawn() -> Iterator[Pair]:
    """Seventy pairs: seven of each operator, of faults that float32 shows, any two as likely as any other two."""
    for operator in OPERATORS:
        there = [fault for fault in FAULTS if fault.operator == operator and "float32" in fault.dtypes]
        yield from islice(_shown(there, random.Random(f"pairs of {operator}")), _EACH)


def _shown(faults: list[Fault], numbers: random.Random) -> Iterator[Pair]:
    while True:
        pair = together(*numbers.sample(faults, 2))
        if pair is not None and len(pair.requirements) == 2 and pair.shows:
            yield pair
