"""A subject that is asked for its mistake: its answers, and whether a candidate answers the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

import attrs

from ...spec.errors import Unsupported
from ...spec.identifiers import is_common
from ..checks.registry import COSTLY
from ..judging.library import Library
from ..judging.subject import Subject
from ..judging.truth import is_about_gradients
from ..judging.verdicts import Result
from .answers import CLEARLY_WRONG, Answer
from .candidates import Candidate
from .following import follow
from .question import Question
from .question_maker import QuestionMaker
from .varying import VARYING
from .violations import violations_of

#: A slow target is asked no further violated check once it has made this many calls.
_CALLS_SLOW = 10


@attrs.define(slots=False)
class AskedSubject:
    """One subject with its violations of MUST requirements; each question is asked once."""

    subject: Subject
    violations: Sequence[Result]
    library: Library = attrs.field(init=False)
    maker: QuestionMaker = attrs.field(init=False)
    #: The violated checks that are asked again, by requirement.
    violated_checks: dict[str, Question] = attrs.field(init=False)
    _answers: dict[Question, Answer] = attrs.field(factory=dict)
    _other_cases: dict[Question, list[Question]] = attrs.field(factory=dict)
    _right_alone: dict[Question, bool] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.library = self.subject.new_library()
        self.maker = QuestionMaker(self.subject, self.library, self.violations)
        self.violated_checks = self.maker.violated_checks_to_ask()

    @cached_property
    def as_asked(self) -> Subject:
        """
        The subject, declared to have no gradients if it has none.

        Checks of values and gradients then stop after the values, in the target and in the candidates alike.
        """
        gradients = [one for one in self.plain_questions if one.derivative]
        lacking = bool(gradients) and all(map(self.is_unsupported, gradients))
        return attrs.evolve(self.subject, forward_only=True) if lacking else self.subject

    # -- answers -------------------------------------------------------------------------------------

    @property
    def answered(self) -> Iterable[tuple[Question, Answer]]:
        """The answers so far."""
        return self._answers.items()

    def answer(self, question: Question) -> Answer:
        """The answer to a question, asked once."""
        if question not in self._answers:
            gradients = question.plain and question.derivative
            self._answers[question] = question.answered_by(self.subject if gradients else self.as_asked)
        return self._answers[question]

    def is_unsupported(self, question: Question) -> bool:
        """Whether the target declines the call, or has no gradients. Nothing is then known about a mistake there."""
        return self.answer(question).words == Unsupported.__name__

    # -- questions -----------------------------------------------------------------------------------

    @property
    def plain_questions(self) -> list[Question]:
        """The outputs and gradients of the cases that show violations, and of fresh ones."""
        return [*self.maker.plain_questions, *self.maker.fresh_questions]

    def questions(self, clear: Sequence[Question]) -> list[Question]:
        """
        All questions that a candidate has to answer as the target does; ``clear``: the violated checks among them.

        First come those that no sound function answers in this way, because most candidates fail there; among these,
        plain calls come first, because they are the cheapest.
        """
        plain, fresh = (
            [one for one in some if not self.is_unsupported(one)]
            for some in (self.maker.plain_questions, self.maker.fresh_questions)
        )
        questions = sorted([*plain, *clear, *fresh], key=lambda one: not self.answer(one).clearly_wrong)
        return [*questions, *self.fresh_checks_of(one.check.requirement for one in clear if one.check is not None)]

    def fresh_checks_of(self, requirements: Iterable[str]) -> Iterator[Question]:
        """These violated checks on fresh cases; none on a slow target, or if the check takes many calls."""
        if not self.subject.always_slow:
            yield from (one for name in requirements for one in self._fresh_checks.get(name, ()))

    @cached_property
    def _fresh_checks(self) -> Mapping[str, list[Question]]:
        return {name: [*self.maker.fresh_checks_of(name)] for name in self.violated_checks if name not in COSTLY}

    def on_other_cases(self, question: Question) -> list[Question]:
        """The same check on other cases."""
        if question not in self._other_cases:
            self._other_cases[question] = [*self.maker.on_other_cases(question)]
        return self._other_cases[question]

    def all_on_other_cases(self) -> Iterator[Question]:
        """Each violated check on other cases; none on a slow target, or if the check takes many calls."""
        if not self.subject.always_slow:
            for name, question in self.violated_checks.items():
                yield from () if name in COSTLY else self.on_other_cases(question)

    # -- checks that are clearly violated ------------------------------------------------------------

    @cached_property
    def clear(self) -> list[Question]:
        """
        The violated checks that the target answers as no sound function does.

        Requirements of every operator (CM-), repeated calls among them, say less about a formula and take more calls.
        They are asked only if no other check is clearly violated.
        """
        return self.clear_of_operator or self._clear_among(self.violated_checks.values())

    @cached_property
    def clear_of_operator(self) -> list[Question]:
        """The clearly violated checks of the operator's own page."""
        return self._clear_among(self.checks_of_operator)

    @property
    def checks_of_operator(self) -> list[Question]:
        """The violated checks of the operator's own page."""
        return [question for name, question in self.violated_checks.items() if not is_common(name)]

    def _clear_among(self, some: Iterable[Question]) -> list[Question]:
        clear = [question for question in some if self._has_calls_left() and self.answer(question).clearly_wrong]
        if not clear and not self.subject.always_slow:
            clear = [one for question in some for one in self._clearer_case(question)]
        return clear

    def _has_calls_left(self) -> bool:
        """
        Whether another check may be asked. The check of an aspect makes ten calls, which are few where calls are quick.
        """
        return not self.subject.always_slow or self.as_asked.calls < _CALLS_SLOW

    def _clearer_case(self, question: Question) -> Iterator[Question]:
        """The first case of the deck that shows a violation more clearly than the case in the report."""
        return islice((one for one in self.on_other_cases(question) if self.answer(one).clearly_wrong), 1)

    # -- candidates that answer the same ---------------------------------------------------------------

    def same(self, candidate: Candidate, question: Question) -> bool:
        """Whether a candidate answers a question as the target does."""
        answer, other = self.answer(question), candidate.answer(question)
        if answer.agrees(other):
            return True
        returned = question.plain and not answer.words and not other.words
        return returned and answer.agrees(candidate.unstable_answer(question))

    def has_same_errors(self, candidate: Candidate, question: Question) -> bool:
        """Whether a candidate answers a question as the target does, or is off by as much."""
        return self.same(candidate, question) or self.answer(question).has_same_errors(candidate.answer(question))

    def agrees(self, candidate: Candidate, questions: Sequence[Question]) -> bool:
        """
        Whether a candidate computes what the target does, and has its derivatives.

        Where the formula is wrong, the target's derivatives are either written out by its author, as the candidate's
        are, or the true derivatives of what it computes, as a framework's are. Where only gradients are wrong, so are
        their derivatives, in one way in a framework and in another where an author writes them out. Nearly all
        candidates fail before the questions that take many calls.
        """
        forward = [question for question in questions if not question.derivative]
        gradients = [question for question in questions if question.derivative and not _is_of_derivatives(question)]
        further = [question for question in questions if _is_of_derivatives(question)]
        cheap, costly = ([one for one in forward if _is_costly(one) == of] for of in (False, True))
        if not all(self.same(candidate, question) for question in cheap):
            return False
        wrong = any(_has_wrong_outputs(candidate, question) for question in (*cheap, *costly))
        plain = [question for question in gradients if question.plain]
        if not all(self.same(candidate, question) for question in gradients):
            if not wrong or not all(
                self.same(candidate, question) or follow(candidate, question, self.answer(question))
                for question in plain
            ):
                return False
        elif not wrong and not any(candidate.answer(question).clearly_wrong for question in plain):
            costly += further  # where gradients are right, their derivatives say something of their own
        return all(self.same(candidate, question) for question in costly)

    def may_differ(self, candidate: Candidate, question: Question) -> bool:
        """Whether a target with a candidate's mistake may answer otherwise: see ``agrees``."""
        if not question.derivative:
            return False
        return self.has_wrong_values(candidate) or (
            _is_of_derivatives(question) and self.has_wrong_gradients(candidate)
        )

    def has_wrong_values(self, candidate: Candidate) -> bool:
        """Whether a candidate's values are wrong, and not only its derivatives."""
        broken = (question for question in self.violated_checks.values() if not question.derivative)
        return any(_has_wrong_outputs(candidate, question) for question in broken)

    def has_wrong_gradients(self, candidate: Candidate) -> bool:
        """Whether gradients are all that is wrong in a candidate, with their derivatives."""
        if self.has_wrong_values(candidate):
            return False
        broken = (one for one in self.violated_checks.values() if one.derivative and not _is_of_derivatives(one))
        return any(candidate.answer(question).clearly_wrong for question in broken)

    def violated_by(self, candidate: Candidate) -> list[str]:
        """The requirements of the violated checks that a run of a candidate violates too."""
        return [one.requirement for one in violations_of(candidate, self.violated_checks, self.library)]

    def may_answer(self, candidate: Candidate, clear: Sequence[Question]) -> bool:
        """
        Whether a candidate can be wrong in all of these questions.

        A function that keeps nothing from call to call is right in repeated calls, unless each call by itself is wrong.
        """
        return candidate.varies or not any(map(self._is_of_repetition, clear))

    def _is_of_repetition(self, question: Question) -> bool:
        """Whether a question is about repeated calls, of which each by itself is right."""
        if question.check is None or question.check.requirement not in VARYING:
            return False
        if question not in self._right_alone:
            self._right_alone[question] = self._is_right_alone(question)
        return self._right_alone[question]

    def _is_right_alone(self, question: Question) -> bool:
        plain = (self.maker.question(question.description, derivative=one) for one in (False, True))
        answers = (self.answer(one) for one in plain if one is not None)
        return not any(
            answer.words or any(one.outside_envelope.any() for one in answer.values.values()) for answer in answers
        )


def _is_costly(question: Question) -> bool:
    return question.check is not None and question.check.requirement in COSTLY


def _is_of_derivatives(question: Question) -> bool:
    """Whether a question is about derivatives of gradients, or about forward mode."""
    return question.derivative and question.check is not None and question.check.raising == "unsupported"


def _has_wrong_outputs(candidate: Candidate, question: Question) -> bool:
    """Whether values other than gradients are wrong. Many checks compare both."""
    inputs = question.case.inputs
    values = candidate.answer(question).values
    about = (value for name, value in values.items() if not is_about_gradients(name, inputs))
    return any(value.worst_error() >= CLEARLY_WRONG for value in about)
