"""Candidates: known mistakes, one or two at a time, as subjects that answer the same questions as a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from ...adapters.numpy.operators.implementation import Implementation
from ...spec.conventions import NORMATIVE
from ..judging.subject import Subject
from ..requests.implementation_targets import implementation_target
from .answers import Answer
from .question import Question
from .sensitivity import sensitivity

if TYPE_CHECKING:
    from ..faults import Fault

#: Conventions that a target may declare and no candidate follows. Those about arguments are undone before the call.
_NOT_FOLLOWED = ("momentum", "gain", "mixed_dtypes", "single_value", "float64", "running_variance")

#: Repetitions of a candidate whose calls do not depend on each other: two rounds, as few as show all that a check of
#: repeated calls compares (checks/repetitions.py).
_REPEATS = 64


@attrs.frozen(eq=False, slots=False)
class Candidate:
    """One or more faults in one function, in the dtype and under the conventions of a subject."""

    faults: tuple[Fault, ...]
    target_subject: Subject
    _answers: dict[Question, Answer] = attrs.field(factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the faults."""
        return tuple(fault.name for fault in self.faults)

    @property
    def varies(self) -> bool:
        """Whether its results depend on other calls."""
        return any(fault.kind == "state" for fault in self.faults)

    @cached_property
    def implementation(self) -> Implementation:
        """The function on NumPy arrays, with fresh state."""
        return _build(self.faults)()

    @cached_property
    def subject(self) -> Subject:
        """The function, with fresh state."""
        target_subject = self.target_subject
        target = implementation_target("+".join(self.names), target_subject.operator, self.implementation)
        return Subject(
            target,
            target.bindings[0],
            target_subject.format,
            conventions={**NORMATIVE, **target_subject.conventions, **{key: NORMATIVE[key] for key in _NOT_FOLLOWED}},
            flushes=target_subject.flushes,
            measured=target_subject.measured,
            forward_only=target_subject.forward_only,
            mode=target_subject.mode,
            repeats=target_subject.repeats if self.varies else min(target_subject.repeats, _REPEATS),
            large_repeats=target_subject.large_repeats if self.varies else min(target_subject.large_repeats, _REPEATS),
        )

    def answer(self, question: Question) -> Answer:
        """Its answer to a question, asked once."""
        if question not in self._answers:
            self._answers[question] = question.answered_by(self.subject, remembers=self.varies)
        return self._answers[question]

    def unstable_answer(self, question: Question) -> Answer:
        """Its answer to a plain question, with how much roundings may change each value."""
        answer = self.answer(question)
        may_change = sensitivity(self.implementation, question.case, gradients=question.derivative)
        return attrs.evolve(
            answer,
            values={
                name: attrs.evolve(value, unstable=may_change.get(name, 0.0)) for name, value in answer.values.items()
            },
        )


def _build(faults: tuple[Fault, ...]) -> Callable[[], Implementation]:
    if len(faults) == 1:
        return faults[0].build
    both = type("Both", tuple(fault.step for fault in faults), {})
    return lambda: both().implementation()


def _all_faults() -> tuple[Fault, ...]:
    # Imported here because it builds every fault: a quarter of a second that a conforming function need not wait for.
    from ..faults import registered

    return registered()


def single_candidates(target_subject: Subject) -> Iterator[Candidate]:
    """Every fault that may show in the subject's operator and dtype."""
    for fault in _all_faults():
        if fault.operator == target_subject.operator and target_subject.format in fault.dtypes:
            yield Candidate((fault,), target_subject)


def candidates_named(target_subject: Subject, names: tuple[str, ...]) -> Iterator[Candidate]:
    """The faults of these names in one function; nothing if one of them cannot show in the subject's dtype."""
    there = {fault.name: fault for fault in _all_faults() if target_subject.format in fault.dtypes}
    if all(name in there for name in names):
        yield Candidate(tuple(there[name] for name in names), target_subject)


def paired(first: Candidate, second: Candidate) -> Candidate | None:
    """The faults of both in one function; None if one would undo the other."""
    for one, other in ((first, second), (second, first)):
        if _compatible(one.faults[0], other.faults[0]):
            return Candidate((*one.faults, *other.faults), first.target_subject)
    return None


def _compatible(first: Fault, second: Fault) -> bool:
    """Whether neither undoes the other: no step is replaced by both."""
    try:
        both = type("Both", (first.step, second.step), {})
    except TypeError:  # no order of their bases suits both
        return False
    return all(_all_in_effect(both, fault.step) for fault in (first, second))


def _all_in_effect(both: type, step: type) -> bool:
    own = [name for name, value in vars(_fault_class(step)).items() if callable(value) and not name.startswith("__")]
    return all(getattr(both, name) is getattr(step, name) for name in own)


def _fault_class(step: type) -> type:
    """The class that the author of the fault wrote, in front of the operator's base."""
    return step if vars(step).keys() - {"__module__", "__doc__"} else step.__mro__[1]
