"""Observations: a target's results on a case, with the exact values, and how many calls they take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs
import numpy as np

from ....reference.formats import FORMATS
from ....spec.errors import CALL_FAILED, Unsupported
from ...cases.case import Case
from ...cases.description import Description
from ...judging.library import Library, fitted
from ...judging.subject import Subject
from ..answers import CLEARLY_WRONG, Answer, Values
from ..question import Question, results_if_any
from .formula_steps import Array, FormulaSteps


@attrs.frozen(eq=False, slots=False)
class ObservedResult:
    """One output or gradient of one case, with what it should be."""

    case: Case
    name: str
    values: Values
    #: The largest number of its dtype. A value near it may round to infinity.
    largest: float

    @property
    def got(self) -> Array:
        """The received values."""
        return self.values.got

    @property
    def expected(self) -> Array:
        """The exact values."""
        return self.values.expected

    @cached_property
    def steps(self) -> FormulaSteps:
        """The steps of the formula on its case."""
        return FormulaSteps.of(self.case)

    @cached_property
    def judged(self) -> Array:
        """Where the right value is known."""
        values = self.values
        return np.isfinite(values.envelope) & (np.abs(values.expected) < self.largest / 4)

    @cached_property
    def wrong(self) -> Array:
        """Where it is off by more than a sound algorithm may be."""
        values = self.values
        bound = values.envelope + np.abs(values.expected) * 2.0**-52
        return self.judged & ~(np.abs(values.got - values.expected) <= bound)

    @cached_property
    def counts(self) -> tuple[int, int]:
        """How many elements are wrong, and how many are judged."""
        return int(np.count_nonzero(self.wrong)), int(np.count_nonzero(self.judged))

    @cached_property
    def slack(self) -> Array:
        """
        How far another function with the same mistake may differ; in a group, the largest value counts everywhere.

        The envelope is smaller where gamma is small, and a wrong formula may use gamma elsewhere.
        """
        slack = self.values.slack()
        if not self.has_x_shape:
            return slack
        rows = self.steps.rows(np.where(np.isfinite(slack), slack, 0.0))
        return np.where(np.isfinite(slack), self.steps.back(rows.max(axis=1, keepdims=True)), np.inf)

    @cached_property
    def clearly_wrong(self) -> bool:
        """Whether it is so far off that an agreement with it is not an accident."""
        off = np.abs(self.got - self.expected)
        return bool((self.wrong & ~(off < CLEARLY_WRONG * self.slack)).any())

    @property
    def has_x_shape(self) -> bool:
        """Whether it has x's shape, and so groups."""
        return self.name in ("y", "dx")


@attrs.define
class Observer:
    """The results of a subject on cases, each asked once, with a limit of calls for a slow target."""

    subject: Subject
    library: Library
    #: How many calls of the subject the whole diagnosis may make; None for no limit.
    most: int | None = None
    _answers: dict[tuple[int, bool], Answer] = attrs.field(factory=dict)
    #: The cases that were asked of the target here, by id: those of the search before are not among them.
    _asked: dict[int, Case] = attrs.field(factory=dict)

    def add(self, question: Question, answer: Answer) -> None:
        """Add an answer that the target gave earlier."""
        if question.plain and not question.ignored_output:
            self._answers[id(question.case), question.derivative] = answer

    def forget(self, case: Case) -> None:
        """Forget the target's results on a case, so that it is asked again."""
        for derivative in (False, True):
            self._answers.pop((id(case), derivative), None)

    @property
    def operator(self) -> str:
        """The operator of the subject."""
        return self.subject.operator

    @property
    def limited(self) -> bool:
        """Whether there is a limit of calls, so that nothing is tried that takes many."""
        return self.most is not None

    @property
    def exhausted(self) -> bool:
        """Whether no further call may be made."""
        return self.most is not None and self.subject.calls >= self.most

    def case(self, description: Description) -> Case | None:
        """The case of a description, in the form that the target takes; None if it takes none."""
        fit = fitted(description, self.subject.binding)
        return None if fit is None else self.library.case(fit)

    def answer(self, case: Case, *, derivative: bool) -> Answer | None:
        """The target's answer on a case; None if it declines, or if no call is left."""
        key = id(case), derivative
        if key not in self._answers:
            if self.exhausted or (derivative and self.subject.forward_only):
                return None
            question = Question(case, case.description, derivative=derivative)  # type: ignore[arg-type]
            self._answers[key] = question.answered_by(self.subject)
            self._asked[id(case)] = case
        found = self._answers[key]
        return None if found.words == Unsupported.__name__ else found

    def observed(self, cases: Iterable[Case]) -> Iterator[ObservedResult]:
        """Every output and gradient of these cases that the target returns."""
        for case in cases:
            for derivative in (False, True):
                yield from self._observed(case, derivative=derivative)

    def fails(self, case: Case) -> bool:
        """Whether the call of a case fails, or that for its gradients."""
        answers = (self.answer(case, derivative=derivative) for derivative in (False, True))
        return any(answer is not None and answer.words for answer in answers)

    def is_wrong(self, case: Case) -> bool:
        """Whether a call of a case fails or returns a wrong result."""
        return any(one.wrong.any() for one in self.observed([case])) or self.fails(case)

    def probed(self, name: str) -> list[ObservedResult]:
        """An output or a gradient of every case that was asked so far, whatever for."""
        return [one for one in self.observed([*self._asked.values()]) if one.name == name]

    def _observed(self, case: Case, *, derivative: bool) -> Iterator[ObservedResult]:
        answer = self.answer(case, derivative=derivative)
        if answer is None:
            return
        largest = FORMATS[self.subject.format].largest
        for name, values in answer.values.items():
            if values.got.shape == values.expected.shape:
                yield ObservedResult(case, name, values, largest)

    def tracked(self, one: ObservedResult) -> ObservedResult | None:
        """The same output of a call whose gradients are taken; None if there is none, or if no call is left."""
        if self.exhausted or self.subject.forward_only:
            return None
        with contextlib.suppress(*CALL_FAILED):
            got = self.subject.observe(one.case).tracked.get(one.name)
            if got is not None and got.shape == one.expected.shape:
                return attrs.evolve(one, values=attrs.evolve(one.values, got=got.astype(np.float64)))
        return None

    def gives_again(self, one: ObservedResult) -> bool:
        """Whether the same call without gradients gives the same output once more; False if no call is left."""
        again = {} if self.exhausted else results_if_any(self.subject, one.case, gradients=False)
        return one.name in again and np.array_equal(again[one.name].astype(np.float64), one.got, equal_nan=True)

    def failure(self, case: Case, *, derivative: bool) -> Exception | None:
        """How the call of a case fails; None if it returns or declines, or if no call is left."""
        if self.exhausted:
            return None
        self.subject.target.begin()
        try:
            self.subject.results(case, gradients=derivative)
        except Unsupported:
            return None
        except CALL_FAILED as failure:
            return failure
        return None
