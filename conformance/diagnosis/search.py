"""The search for the mistake behind the violations of one binding in one dtype."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np

from ...spec.errors import Unsupported
from ..checks.registry import COSTLY
from ..judging.library import Library
from ..judging.subject import Subject
from ..judging.truth import is_about_gradients
from ..judging.verdicts import Result
from .answers import CLEARLY_WRONG, Answer
from .candidates import Candidate, candidates_named, paired, single_candidates
from .first_calls import FirstCalls
from .following import follow
from .question import Question
from .question_maker import QuestionMaker
from .small_errors import has_same_small_errors
from .varying import VARYING, VaryingTarget
from .violations import violations_of

#: Only up to this many candidates are told apart by what each violates itself: that takes a run for each.
_FINALISTS = 12

#: Times a violated check is repeated on a function whose calls vary: enough to meet a right call if one in three is.
ASKED_AGAIN = 5

#: Faults that are tried in pairs: those that answer the most questions as the target does.
_MOST_PAIRED = 60

#: Pairs that are tried, the likeliest first: some two seconds. A count, so that no report depends on time.
_MOST_PAIRS = 200

#: Faults tried together with every other one, in case one hides what the other does: those that answer most questions
#: alike.
_MOST_LEADING = 3

#: In so many cases at least y has to be x itself, or the same number, if no formula is looked for in it.
_LEAST_SEEN = 5

#: A slow target is asked no further violated check once it has made this many calls.
_CALLS_SLOW = 10


@attrs.frozen(eq=False)
class Explanation:
    """An explanation of violations: candidates that no question tells apart, and the requirements they explain."""

    candidates: tuple[Candidate, ...]
    #: By requirement, the places of a candidate's faults that violate it by themselves; all places if none does.
    explains: Mapping[str, tuple[int, ...]]


@attrs.define(slots=False)
class Search:
    """The search on one subject."""

    subject: Subject
    #: Its violations of MUST requirements; then the requirements that it was judged by and satisfies.
    violations: Sequence[Result]
    satisfied: frozenset[str]
    #: Faults that explain the violations in another dtype. If they explain them here too, no others are searched.
    known: tuple[tuple[str, ...], ...] = ()
    library: Library = attrs.field(init=False)
    _answers: dict[Question, Answer] = attrs.field(factory=dict)
    _other_cases: dict[Question, list[Question]] = attrs.field(factory=dict)
    _right_alone: dict[Question, bool] = attrs.field(factory=dict)
    _maker: QuestionMaker = attrs.field(init=False)
    _violated_checks: dict[str, Question] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.library = self.subject.new_library()
        self._maker = QuestionMaker(self.subject, self.library, self.violations)
        self._violated_checks = self._maker.violated_checks_to_ask()

    @cached_property
    def alone(self) -> Explanation | None:
        """The one mistake of the target; None where no single mistake of the library matches."""
        if self._varying is not None:  # other questions have no single answer
            return self._find_varying(self._varying)
        if self.found_again is not None:
            return self.found_again
        if len(self._kept) == 1:
            return self._explain_kept(self._kept)
        agreeing = self._agreeing if self._clear else [*self._candidates_with_small_errors()]
        return self._explain_matching(self._survivors(agreeing))

    @cached_property
    def together(self) -> Explanation | None:
        """Two mistakes that only together match a target on which no single one does; None where none match."""
        if self._varying is not None:  # its series were compared with those of pairs too
            return None
        few = self._clear and len(self._agreeing) <= _FINALISTS
        pairs = self._pairs() if few and not self._ignores_formula else []
        return self._explain_matching(self._survivors(pairs)) or (
            self._explain_kept(self._kept) if self._kept else None
        )

    @property
    def _ignores_formula(self) -> bool:
        """
        Whether y is x itself, or one number in all cases, as no mistake of the library gives it.

        No step of the formula is then left in which two mistakes could show.
        """
        plain = [*self._maker.plain_questions, *self._maker.fresh_questions]
        asked = [one for one in plain if not one.derivative and one.case.x.size > 1]
        seen = [(one.case.x, value.got) for one in asked if (value := self.answer(one).values.get("y")) is not None]
        if len(seen) < _LEAST_SEEN:
            return False
        number = seen[0][1].flat[0]
        is_x = all(np.array_equal(x, y, equal_nan=True) for x, y in seen)
        if not is_x and not all(np.array_equal(y, np.full_like(y, number), equal_nan=True) for _, y in seen):
            return False
        return not any(all(self._same(candidate, one) for one in asked) for candidate in self._candidates)

    def lacks_gradients_beside(self, found: Explanation) -> bool:
        """
        Whether an explanation is of derivatives of higher order alone, and gradients are missing that it leaves.

        A derivative of what was cut off is wrong too, and like that of a mistake that cuts off later.
        """
        checks = self._maker.checks
        missing = any(
            one.requirement == "CM-T3" and one.counterexample is not None and one.counterexample.failure == "missing"
            for one in self.violations
        )
        own = {fault.requirement for candidate in found.candidates for fault in candidate.faults}
        higher = all(name in checks and checks[name].raising == "unsupported" for name in own)
        return missing and higher and "CM-T3" not in found.explains

    @cached_property
    def found_again(self) -> Explanation | None:
        """The mistakes known from another dtype that explain the violations here too; None if there are none."""
        if self._varying is not None or not self.known:
            return None
        # They need not be clear here, where few digits may hide them.
        asked = self._clear_of_operator or self._checks_of_operator or self._clear
        again = [one for one in self._known_candidates if self._agrees(one, self._questions(asked))]
        # All of them: what one dtype does not tell apart, the next may.
        return self._explain(again) if again else None

    @cached_property
    def violated_again(self) -> Explanation | None:
        """
        The mistakes known from another dtype that violate what is violated here, even if with other values.

        If the formula is wrong, derivatives are not compared.
        """
        again = [one for one in self._known_candidates if self._violates_all(one)]
        return self._explain(again) if again and self._varying is None else None

    def _violates_all(self, candidate: Candidate) -> bool:
        asked = self._violated_checks.values()
        violated = [one for one in asked if candidate.answer(one).words]
        wrong = not all(one.derivative for one in violated)
        return bool(violated) and all(one in violated or (wrong and one.derivative) for one in asked)

    @cached_property
    def _known_candidates(self) -> list[Candidate]:
        return [one for names in self.known for one in candidates_named(self._target_subject, names)]

    @cached_property
    def _agreeing(self) -> list[Candidate]:
        """The candidates that answer all questions as the target does."""
        possible = (one for one in self._candidates if self._may_answer(one, self._clear))
        return [one for one in possible if self._agrees(one, self._asked)]

    @cached_property
    def _asked(self) -> Sequence[Question]:
        return self._questions(self._clear)

    def _explain_matching(self, matching: list[Candidate]) -> Explanation | None:
        return self._explain(self._agreeing_on_other_cases(matching)) if matching else None

    def _candidates_with_small_errors(self) -> Iterator[Candidate]:
        """Candidates with many values wrong as the target's are, for a target on which nothing is wrong by much."""
        if self.subject.slow:
            return
        questions = [*self._questions([*self._violated_checks.values()]), *self._all_on_other_cases()]
        for one in self._candidates:
            if self._agrees(one, questions) and has_same_small_errors(
                (q, self.answer(q), one.answer(q)) for q in questions
            ):
                yield one

    def _all_on_other_cases(self) -> Iterator[Question]:
        """Each violated check on other cases; none on a slow target, or if the check takes many calls."""
        if not self.subject.slow:
            for name, question in self._violated_checks.items():
                yield from () if name in COSTLY else self._on_other_cases(question)

    def _on_other_cases(self, question: Question) -> list[Question]:
        if question not in self._other_cases:
            self._other_cases[question] = [*self._maker.on_other_cases(question)]
        return self._other_cases[question]

    def _agreeing_on_other_cases(self, matching: list[Candidate]) -> list[Candidate]:
        """
        The candidates that answer all violated checks as the target does on other cases too; all of them if none does.

        A target may do other things besides the mistake, or raise where it need not. A true name stays true then.
        """
        if len(matching) < 2:
            return matching
        others = [*self._fresh_checks_of(self._violated_checks), *self._all_on_other_cases()]
        return [one for one in matching if all(self._same(one, question) for question in others)] or matching

    # -- questions -------------------------------------------------------------------------------

    @property
    def answered(self) -> Iterable[tuple[Question, Answer]]:
        """The target's answers so far."""
        return self._answers.items()

    def answer(self, question: Question) -> Answer:
        """The target's answer to a question, asked once."""
        if question not in self._answers:
            gradients = question.plain and question.derivative
            self._answers[question] = question.answered_by(self.subject if gradients else self._target_subject)
        return self._answers[question]

    def _questions(self, clear: Sequence[Question]) -> list[Question]:
        """
        All questions that a candidate has to answer as the target does.

        First come those that no sound function answers in this way, because most candidates fail there; among these,
        plain calls come first, because they are the cheapest.
        """
        plain, fresh = (
            [one for one in some if not self._is_unsupported(one)]
            for some in (self._maker.plain_questions, self._maker.fresh_questions)
        )
        questions = sorted([*plain, *clear, *fresh], key=lambda one: not self.answer(one).clearly_wrong)
        return [*questions, *self._fresh_checks_of(one.check.requirement for one in clear if one.check is not None)]

    def _fresh_checks_of(self, requirements: Iterable[str]) -> Iterator[Question]:
        """These violated checks on fresh cases; none on a slow target, or if the check takes many calls."""
        if not self.subject.slow:
            yield from (one for name in requirements for one in self._fresh_checks.get(name, ()))

    @cached_property
    def _target_subject(self) -> Subject:
        """
        The subject, declared to have no gradients if it has none.

        Checks of values and gradients then stop after the values, in the target and in the candidates alike.
        """
        plain = (*self._maker.plain_questions, *self._maker.fresh_questions)
        gradients = [one for one in plain if one.derivative]
        lacking = bool(gradients) and all(map(self._is_unsupported, gradients))
        return attrs.evolve(self.subject, forward_only=True) if lacking else self.subject

    @cached_property
    def _fresh_checks(self) -> Mapping[str, list[Question]]:
        return {name: [*self._maker.fresh_checks_of(name)] for name in self._violated_checks if name not in COSTLY}

    @cached_property
    def _clear(self) -> list[Question]:
        """
        The violated checks that the target answers as no sound function does.

        Requirements of every operator (CM-), repeated calls among them, say less about a formula and take more calls.
        They are asked only if no other check is clearly violated.
        """
        return self._clear_of_operator or self._clear_among(self._violated_checks.values())

    @cached_property
    def _clear_of_operator(self) -> list[Question]:
        return self._clear_among(self._checks_of_operator)

    @property
    def _checks_of_operator(self) -> list[Question]:
        """The violated checks of the operator's own page."""
        return [question for name, question in self._violated_checks.items() if not name.startswith("CM-")]

    def _clear_among(self, some: Iterable[Question]) -> list[Question]:
        clear = [question for question in some if self._has_calls_left() and self.answer(question).clearly_wrong]
        if not clear and not self.subject.slow:
            clear = [one for question in some for one in self._clearer_case(question)]
        return clear

    def _has_calls_left(self) -> bool:
        """
        Whether another check may be asked. The check of an aspect makes ten calls, which are few where calls are quick.
        """
        return not self.subject.slow or self._target_subject.calls < _CALLS_SLOW

    def _clearer_case(self, question: Question) -> Iterator[Question]:
        """The first case of the deck that shows a violation more clearly than the case in the report."""
        clear = (one for one in self._on_other_cases(question) if self.answer(one).clearly_wrong)
        return itertools.islice(clear, 1)

    def _is_unsupported(self, question: Question) -> bool:
        """Whether the target declines the call, or has no gradients. Nothing is then known about a mistake there."""
        return self.answer(question).words == Unsupported.__name__

    # -- repeated calls --------------------------------------------------------------------------

    @cached_property
    def _varying(self) -> VaryingTarget | None:
        """
        The series of a target whose repeated calls give different results; None for any other target.

        If CM-P3 is satisfied, repeated calls gave the same bits.
        """
        if "CM-P3" in self.satisfied:
            return None
        found = VaryingTarget(self._maker, tuple(self._violated_checks))
        return found if found.series else None

    def _find_varying(self, varying: VaryingTarget) -> Explanation | None:
        """The one mistake whose repeated calls change as the target's do, or such a mistake together with another."""
        known = [one for one in self._known_candidates if one.varies and varying.changes_like(one)]
        matching = known or [one for one in self._candidates if one.varies and varying.changes_like(one)]
        matching = matching or [*varying.pairs(self._candidates)]
        return self._explain_varying(matching) if matching else None

    @cached_property
    def _kept(self) -> list[Candidate]:
        """The mistakes that keep of the first call of each shape what the target keeps; empty if it keeps nothing."""
        kept = self._first_calls
        return [one for one in self._candidates if one.varies and kept.keeps_like(one)] if kept.answers else []

    def _explain_kept(self, matching: Sequence[Candidate]) -> Explanation:
        """The violations that the first candidate shows too in a run, or in a new shape, and those gone there."""
        violated = [matching[0].faults[0].requirement, *self._violates(matching[0])]
        explained = (
            result.requirement
            for result in self.violations
            if result.requirement in violated or self._first_calls.explains(result, matching[0])
        )
        return Explanation(tuple(matching), dict.fromkeys(explained, (0,)))

    def _explain_varying(self, matching: Sequence[Candidate]) -> Explanation:
        """
        The violations in a run of the first candidate, each with the faults that show it by themselves.

        A violation that the target shows only in some calls belongs to the fault whose calls change.
        """
        alone = [Candidate((fault,), self._target_subject) for fault in matching[0].faults]
        violated = [{one.faults[0].requirement, *self._violates(one)} for one in alone]
        together = self._violates(matching[0]) if len(alone) > 1 else ()
        explained = {}
        for name, question in self._violated_checks.items():
            places = tuple(place for place, names in enumerate(violated) if name in names)
            if not places and name in together:
                places = tuple(range(len(alone)))
            elif not places and any(not question.answered_by(self.subject).words for _ in range(ASKED_AGAIN)):
                places = (next(place for place, one in enumerate(alone) if one.varies),)
            if places:
                explained[name] = places
        return Explanation(tuple(matching), explained)

    def _violates(self, candidate: Candidate) -> list[str]:
        return [one.requirement for one in violations_of(candidate, self._violated_checks, self.library)]

    # -- candidates ------------------------------------------------------------------------------

    @cached_property
    def _first_calls(self) -> FirstCalls:
        return FirstCalls(self._maker, self._target_subject)

    @cached_property
    def _candidates(self) -> tuple[Candidate, ...]:
        """
        The mistakes that the target may have made.

        Each mistake violates its own requirement. A target that was judged by that requirement and satisfies it has not
        made the mistake. A requirement that was judged on few sizes (CM-S1), or on few cases because calls are slow,
        rules nothing out.
        """
        satisfied = frozenset() if self.subject.slow else self.satisfied - {"CM-S1"}
        return tuple(
            one for one in single_candidates(self._target_subject) if one.faults[0].requirement not in satisfied
        )

    def _may_answer(self, candidate: Candidate, clear: Sequence[Question]) -> bool:
        """
        Whether a candidate can be wrong in all of these questions.

        A function that keeps nothing from call to call is right in repeated calls, unless each call by itself is wrong.
        """
        return candidate.varies or not any(map(self._is_of_repetition, clear))

    def _is_of_repetition(self, question: Question) -> bool:
        if question.check is None or question.check.requirement not in VARYING:
            return False
        if question not in self._right_alone:
            self._right_alone[question] = self._is_right_alone(question)
        return self._right_alone[question]

    def _is_right_alone(self, question: Question) -> bool:
        """Whether a single call is right where repeated calls are wrong."""
        plain = (self._maker.question(question.description, derivative=one) for one in (False, True))
        answers = (self.answer(one) for one in plain if one is not None)
        return not any(
            answer.words or any(one.outside_envelope.any() for one in answer.values.values()) for answer in answers
        )

    def _same(self, candidate: Candidate, question: Question) -> bool:
        answer, other = self.answer(question), candidate.answer(question)
        if answer.agrees(other):
            return True
        returned = question.plain and not answer.words and not other.words
        return returned and answer.agrees(candidate.unstable_answer(question))

    def _agrees(self, candidate: Candidate, questions: Sequence[Question]) -> bool:
        """
        Whether a candidate computes what the target does, and has its derivatives.

        Where the formula is wrong, the target's derivatives are either written out by its author, as the candidate's
        are, or the true derivatives of what it computes, as a framework's are. Nearly all candidates fail before the
        questions that take many calls.
        """
        forward = [question for question in questions if not question.derivative]
        backward = [question for question in questions if question.derivative]
        cheap, costly = ([one for one in forward if _is_costly(one) == of] for of in (False, True))
        if not all(self._same(candidate, question) for question in cheap):
            return False
        if not all(self._same(candidate, question) for question in backward):
            wrong = any(_has_wrong_outputs(candidate, question) for question in (*cheap, *costly))
            plain = [question for question in backward if question.plain]
            if not wrong or not all(
                self._same(candidate, question) or follow(candidate, question, self.answer(question))
                for question in plain
            ):
                return False
        return all(self._same(candidate, question) for question in costly)

    def _pairs(self) -> list[Candidate]:
        """
        Two mistakes together; first the pairs whose members alone answer the most questions as the target does.

        Where mistakes are known from another dtype, each pair has one of them: the function is the same.
        """
        alike = {
            one: frozenset(q for q in self._clear if self._may_answer(one, [q]) and self._has_same_errors(one, q))
            for one in self._candidates
        }
        few = sorted((one for one in self._candidates if alike[one]), key=lambda one: -len(alike[one]))[:_MOST_PAIRED]
        pairs = (two for two in itertools.combinations(few, 2) if any(map(self._may_be_here, two)))
        together = sorted(pairs, key=lambda two: -len(alike[two[0]] | alike[two[1]]))
        both = (paired(*two) for two in together[:_MOST_PAIRS])
        matching = [one for one in both if one is not None and self._agrees(one, self._asked)]
        leading = [one for one in few[:_MOST_LEADING] if self._may_be_here(one)]
        return matching or [*self._pairs_with_a_hidden_one(leading)]

    def _may_be_here(self, candidate: Candidate) -> bool:
        """Whether another dtype shows the mistake; any may be here if none is known."""
        return not self.known or candidate.names in self.known

    def _has_same_errors(self, candidate: Candidate, question: Question) -> bool:
        return self._same(candidate, question) or self.answer(question).has_same_errors(candidate.answer(question))

    def _pairs_with_a_hidden_one(self, leading: Sequence[Candidate]) -> Iterator[Candidate]:
        """
        Pairs in which one mistake alone shows in no answer.

        For example, a wrong formula makes all gradients wrong, so none of them equals what a mistake in the backward
        pass alone gives. The questions that the first mistake answers differently from the target come first, because
        nearly all pairs fail there.
        """
        for place, first in enumerate(leading):
            left = [question for question in self._asked if not self._same(first, question)]
            for other in self._candidates:
                both = None if other in leading[: place + 1] else paired(first, other)
                if both is not None and self._agrees(both, left) and self._agrees(both, self._asked):
                    yield both

    def _survivors(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates for which the target shows everything that a run of theirs shows."""
        if len(candidates) > _FINALISTS:
            return []
        kept = [one for one in candidates if not self._keeps_something_else(one)]
        same = (one for one in kept if all(self._same(one, asked) for asked in self._last_questions(one)))
        return [one for one in same if not self._is_right_where_wrong(one)]

    def _keeps_something_else(self, candidate: Candidate) -> bool:
        """Whether what a candidate keeps of earlier calls is not what the target keeps, as new shapes show."""
        return candidate.varies and bool(self._first_calls.answers) and not self._first_calls.keeps_like(candidate)

    def _last_questions(self, candidate: Candidate) -> Iterator[Question]:
        """
        Questions that take the most time, asked of the few candidates that are left; none on a slow target.

        A mistake that begins or ends at some size is asked about at many sizes, and one about arguments in many shapes:
        target and candidate have to refuse the same.
        """
        if self.subject.slow:
            return
        kinds = {fault.kind for fault in candidate.faults}
        if "size" in kinds:
            yield from (one for one in self._maker.size_questions if not self._is_unsupported(one))
        if "argument" in kinds:
            yield from (one for one in self._maker.shape_questions if not self._is_unsupported(one))
        yield from self._extra_violations(candidate)

    def _is_right_where_wrong(self, candidate: Candidate) -> bool:
        """
        Whether the target is right on a case that differs from a shown one, and the candidate is clearly wrong there.

        Nothing else on such a case speaks against a name: the target may have made another mistake too. Derivatives of
        a wrong formula may differ (following.py), and so may what is remembered.
        """
        if self.subject.slow or candidate.varies or self._maker.preceded_by is not None:
            return False
        wrong = self._is_wrong(candidate)
        asked = (one for one in self._maker.contrasting_questions if not (wrong and one.derivative))
        return any(self.answer(one).right and candidate.answer(one).clearly_wrong for one in asked)

    def _extra_violations(self, candidate: Candidate) -> Iterator[Question]:
        """
        The candidate's violations of requirements that the target satisfies, as questions.

        Where the candidate's formula is wrong, derivatives are left out: the target's may differ (following.py).
        """
        wrong = self._is_wrong(candidate)
        for result in violations_of(candidate, self.satisfied - COSTLY, self.library):
            question = self._maker.question(result.violated_on, self._maker.checks[result.requirement])
            if question is None or (wrong and question.derivative):
                continue
            if candidate.answer(question).clearly_wrong:
                yield question

    def _explain(self, matching: Sequence[Candidate]) -> Explanation:
        """
        The violations that the first candidate shows too, each with the faults that show it by themselves.

        Where the formula is wrong, wrong gradients count too, because they were found to be its derivatives. Higher
        derivatives do not count: nothing is known about them. If a function remembers earlier calls, a violation that
        is gone after another call follows from that.
        """
        candidate = matching[0]
        alone = [Candidate((fault,), self._target_subject) for fault in candidate.faults]
        explained = {}
        for name, question in self._maker.violated_checks.items():
            gradient = question.derivative and self._maker.checks[name].raising != "unsupported"
            forgotten = question.preceded_by is not None and not self.answer(question).words
            if candidate.answer(question).words or forgotten or (gradient and self._is_wrong(candidate)):
                places = tuple(place for place, one in enumerate(alone) if one.answer(question).words)
                explained[name] = places or tuple(range(len(alone)))
        return Explanation(tuple(matching), explained)

    def _is_wrong(self, candidate: Candidate) -> bool:
        """Whether its values are wrong, and not only its derivatives."""
        broken = (question for question in self._violated_checks.values() if not question.derivative)
        return any(_has_wrong_outputs(candidate, question) for question in broken)


def _is_costly(question: Question) -> bool:
    return question.check is not None and question.check.requirement in COSTLY


def _has_wrong_outputs(candidate: Candidate, question: Question) -> bool:
    """Whether values other than gradients are wrong. Many checks compare both."""
    inputs = question.case.inputs
    values = candidate.answer(question).values
    about = (value for name, value in values.items() if not is_about_gradients(name, inputs))
    return any(value.worst_error() >= CLEARLY_WRONG for value in about)
