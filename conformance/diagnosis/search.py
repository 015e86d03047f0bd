"""The search for the mistake behind the violations of one binding in one dtype."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np

from ..checks.registry import COSTLY
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .asked_subject import AskedSubject
from .candidates import Candidate, candidates_named, paired, single_candidates
from .explanation import Explanation
from .first_calls import FirstCalls
from .question import Question
from .small_errors import has_same_small_errors
from .varying import VaryingTarget
from .violations import violations_of

#: Only up to this many candidates are told apart by what each violates itself: that takes a run for each.
_FINALISTS = 12

#: Faults that are tried in pairs: those that answer the most questions as the target does.
_MOST_PAIRED = 60

#: Pairs that are tried, the likeliest first: some two seconds. A count, so that no report depends on time.
_MOST_PAIRS = 200

#: Faults tried together with every other one, in case one hides what the other does: those that answer most questions
#: alike.
_MOST_LEADING = 3

#: In so many cases at least y has to be x itself, or the same number, if no formula is looked for in it.
_LEAST_SEEN = 5


@attrs.define(slots=False)
class Search:
    """The search on one subject."""

    subject: Subject
    #: Its violations of MUST requirements; then the requirements that it was judged by and satisfies.
    violations: Sequence[Result]
    satisfied: frozenset[str]
    #: Faults that explain the violations in another dtype. If they explain them here too, no others are searched.
    known: tuple[tuple[str, ...], ...] = ()
    asked: AskedSubject = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.asked = AskedSubject(self.subject, self.violations)

    @cached_property
    def alone(self) -> Explanation | None:
        """The one mistake of the target; None where no single mistake of the library matches."""
        if self.varying is not None:  # other questions have no single answer
            return self._find_varying(self.varying)
        if self.found_again is not None:
            return self.found_again
        if len(self._kept) == 1:
            return self._explain_kept(self._kept)
        agreeing = self._agreeing if self.asked.clear else [*self._candidates_with_small_errors()]
        return self._explain_matching(self.survivors(agreeing))

    @cached_property
    def together(self) -> Explanation | None:
        """Two mistakes that only together match a target on which no single one does; None where none match."""
        if self.varying is not None:  # its series were compared with those of pairs too
            return None
        few = self.asked.clear and len(self._agreeing) <= _FINALISTS
        pairs = self._pairs() if few and not self._ignores_formula else []
        return self._explain_matching(self.survivors(pairs)) or (self._explain_kept(self._kept) if self._kept else None)

    def lacks_gradients_beside(self, found: Explanation) -> bool:
        """
        Whether an explanation is of derivatives of higher order alone, and gradients are missing that it leaves.

        A derivative of what was cut off is wrong too, and like that of a mistake that cuts off later.
        """
        checks = self.asked.maker.checks
        missing = any(
            one.requirement == "CM-T3" and one.counterexample is not None and one.counterexample.failure == "missing"
            for one in self.violations
        )
        own = {fault.requirement for candidate in found.candidates for fault in candidate.faults}
        higher = all(name in checks and checks[name].raising == "unsupported" for name in own)
        return missing and higher and "CM-T3" not in found.explains

    # -- mistakes known from another dtype -------------------------------------------------------------

    @cached_property
    def found_again(self) -> Explanation | None:
        """The mistakes known from another dtype that explain the violations here too; None if there are none."""
        if self.varying is not None or not self.known:
            return None
        # They need not be clear here, where few digits may hide them.
        checks = self.asked.clear_of_operator or self.asked.checks_of_operator or self.asked.clear
        again = [one for one in self._known_candidates if self.asked.agrees(one, self.asked.questions(checks))]
        # All of them: what one dtype does not tell apart, the next may.
        return Explanation.of(again, self.asked) if again else None

    @cached_property
    def violated_again(self) -> Explanation | None:
        """
        The mistakes known from another dtype that violate what is violated here, even if with other values.

        If the formula is wrong, derivatives are not compared.
        """
        again = [one for one in self._known_candidates if self._violates_all(one)]
        return Explanation.of(again, self.asked) if again and self.varying is None else None

    def _violates_all(self, candidate: Candidate) -> bool:
        checks = self.asked.violated_checks.values()
        violated = [one for one in checks if candidate.answer(one).words]
        wrong = not all(one.derivative for one in violated)
        return bool(violated) and all(one in violated or (wrong and one.derivative) for one in checks)

    @cached_property
    def _known_candidates(self) -> list[Candidate]:
        return [one for names in self.known for one in candidates_named(self.asked.as_asked, names)]

    # -- one mistake -----------------------------------------------------------------------------------

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """
        The mistakes that the target may have made.

        Each mistake violates its own requirement. A target that was judged by that requirement and satisfies it has not
        made the mistake. A requirement that was judged on few sizes (CM-S1), or on few cases because calls are slow,
        rules nothing out.
        """
        satisfied = frozenset() if self.subject.slow else self.satisfied - {"CM-S1"}
        candidates = single_candidates(self.asked.as_asked)
        return tuple(one for one in candidates if one.faults[0].requirement not in satisfied)

    @cached_property
    def _agreeing(self) -> list[Candidate]:
        """The candidates that answer all questions as the target does."""
        possible = (one for one in self.candidates if self.asked.may_answer(one, self.asked.clear))
        return [one for one in possible if self.asked.agrees(one, self._questions)]

    @cached_property
    def _questions(self) -> Sequence[Question]:
        return self.asked.questions(self.asked.clear)

    def _candidates_with_small_errors(self) -> Iterator[Candidate]:
        """Candidates with many values wrong as the target's are, for a target on which nothing is wrong by much."""
        if self.subject.always_slow:
            return
        violated = [*self.asked.violated_checks.values()]
        questions = [*self.asked.questions(violated), *self.asked.all_on_other_cases()]
        for one in self.candidates:
            if self.asked.agrees(one, questions) and has_same_small_errors(
                (q, self.asked.answer(q), one.answer(q)) for q in questions
            ):
                yield one

    # -- two mistakes ----------------------------------------------------------------------------------

    @property
    def _ignores_formula(self) -> bool:
        """
        Whether y is x itself, or one number in all cases, as no mistake of the library gives it.

        No step of the formula is then left in which two mistakes could show.
        """
        asked = [one for one in self.asked.plain_questions if not one.derivative and one.case.x.size > 1]
        values = ((one.case.x, self.asked.answer(one).values.get("y")) for one in asked)
        seen = [(x, y.got) for x, y in values if y is not None]
        if len(seen) < _LEAST_SEEN:
            return False
        number = seen[0][1].flat[0]
        is_x = all(np.array_equal(x, y, equal_nan=True) for x, y in seen)
        if not is_x and not all(np.array_equal(y, np.full_like(y, number), equal_nan=True) for _, y in seen):
            return False
        return not any(all(self.asked.same(candidate, one) for one in asked) for candidate in self.candidates)

    def _pairs(self) -> list[Candidate]:
        """
        Two mistakes together; first the pairs whose members alone answer the most questions as the target does.

        Where mistakes are known from another dtype, each pair has one of them: the function is the same.
        """
        asked = self.asked
        # A law makes many calls, and says no more than the formula that it follows from.
        own = [one for one in asked.clear if one.check is None or not one.check.of] or asked.clear
        alike = {
            one: frozenset(q for q in own if asked.may_answer(one, [q]) and asked.has_same_errors(one, q))
            for one in self.candidates
        }
        few = sorted((one for one in self.candidates if alike[one]), key=lambda one: -len(alike[one]))[:_MOST_PAIRED]
        pairs = (two for two in itertools.combinations(few, 2) if any(map(self._may_be_here, two)))
        together = sorted(pairs, key=lambda two: -len(alike[two[0]] | alike[two[1]]))
        both = (paired(*two) for two in together[:_MOST_PAIRS])
        matching = [one for one in both if one is not None and asked.agrees(one, self._questions)]
        leading = [one for one in few[:_MOST_LEADING] if self._may_be_here(one)]
        return matching or [*self._pairs_with_a_hidden_one(leading)]

    def _may_be_here(self, candidate: Candidate) -> bool:
        """Whether another dtype shows the mistake; any may be here if none is known."""
        return not self.known or candidate.names in self.known

    def _pairs_with_a_hidden_one(self, leading: Sequence[Candidate]) -> Iterator[Candidate]:
        """
        Pairs in which one mistake alone shows in no answer.

        For example, a wrong formula makes all gradients wrong, so none of them equals what a mistake in the backward
        pass alone gives. The questions that the first mistake answers differently from the target come first, because
        nearly all pairs fail there.
        """
        for place, first in enumerate(leading):
            left = [question for question in self._questions if not self.asked.same(first, question)]
            for other in self.candidates:
                both = None if other in leading[: place + 1] else paired(first, other)
                if both is not None and self.asked.agrees(both, left) and self.asked.agrees(both, self._questions):
                    yield both

    # -- what only a run of a candidate shows ------------------------------------------------------------

    def survivors(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates for which the target shows everything that a run of theirs shows."""
        if len(candidates) > _FINALISTS:
            return []
        kept = [one for one in candidates if not self._keeps_something_else(one)]
        same = (one for one in kept if all(self.asked.same(one, question) for question in self._last_questions(one)))
        return [one for one in same if not self._is_right_where_wrong(one)]

    def _keeps_something_else(self, candidate: Candidate) -> bool:
        """Whether what a candidate keeps of earlier calls is not what the target keeps, as new shapes show."""
        return candidate.varies and bool(self._first_calls.answers) and not self._first_calls.keeps_like(candidate)

    def _last_questions(self, candidate: Candidate) -> Iterator[Question]:
        """
        Questions that take the most time, asked of the few candidates that are left; none where new shapes are slow.

        A mistake that begins or ends at some size is asked about at many sizes, and one about arguments in many shapes:
        target and candidate have to refuse the same.
        """
        if self.subject.slow:
            return
        kinds = {fault.kind for fault in candidate.faults}
        if "size" in kinds:
            yield from (one for one in self.asked.maker.size_questions if not self.asked.is_unsupported(one))
        if "argument" in kinds:
            yield from (one for one in self.asked.maker.shape_questions if not self.asked.is_unsupported(one))
        yield from self._extra_violations(candidate)

    def _extra_violations(self, candidate: Candidate) -> Iterator[Question]:
        """
        The candidate's violations of requirements that the target satisfies, as questions.

        Derivatives are left out where the target's may differ.
        """
        maker = self.asked.maker
        for result in violations_of(candidate, self.satisfied - COSTLY, self.asked.library):
            question = maker.question(result.violated_on, maker.checks[result.requirement])
            if question is None or self.asked.may_differ(candidate, question):
                continue
            if candidate.answer(question).clearly_wrong:
                yield question

    def _is_right_where_wrong(self, candidate: Candidate) -> bool:
        """
        Whether the target is right on a case that differs from a shown one, and the candidate is clearly wrong there.

        Nothing else on such a case speaks against a name: the target may have made another mistake too. Derivatives
        of what is wrong may differ, and so may what is remembered.
        """
        if self.subject.always_slow or candidate.varies or self.asked.maker.preceded_by is not None:
            return False
        asked = self.asked.maker.contrasting_questions
        contrasting = (one for one in asked if not self.asked.may_differ(candidate, one))
        return any(self.asked.answer(one).right and candidate.answer(one).clearly_wrong for one in contrasting)

    def _explain_matching(self, matching: list[Candidate]) -> Explanation | None:
        return Explanation.of(self._agreeing_on_other_cases(matching), self.asked) if matching else None

    def _agreeing_on_other_cases(self, matching: list[Candidate]) -> list[Candidate]:
        """
        The candidates that answer all violated checks as the target does on other cases too; all of them if none does.

        A target may do other things besides the mistake, or raise where it need not. A true name stays true then.
        """
        if len(matching) < 2:
            return matching
        others = [*self.asked.fresh_checks_of(self.asked.violated_checks), *self.asked.all_on_other_cases()]
        return [one for one in matching if all(self.asked.same(one, question) for question in others)] or matching

    # -- what depends on earlier calls -------------------------------------------------------------------

    @cached_property
    def varying(self) -> VaryingTarget | None:
        """
        The series of a target whose repeated calls give different results; None for any other target.

        If CM-P3 is satisfied, repeated calls gave the same bits.
        """
        if "CM-P3" in self.satisfied:
            return None
        found = VaryingTarget(self.asked.maker, tuple(self.asked.violated_checks))
        return found if found.series else None

    def _find_varying(self, varying: VaryingTarget) -> Explanation | None:
        """The one mistake whose repeated calls change as the target's do, or such a mistake together with another."""
        known = [one for one in self._known_candidates if one.varies and varying.changes_like(one)]
        matching = known or [one for one in self.candidates if one.varies and varying.changes_like(one)]
        matching = matching or [*varying.pairs(self.candidates)]
        return Explanation.of_varying(matching, self.asked) if matching else None

    @cached_property
    def _first_calls(self) -> FirstCalls:
        return FirstCalls(self.asked.maker, self.asked.as_asked)

    @cached_property
    def _kept(self) -> list[Candidate]:
        """The mistakes that keep of the first call of each shape what the target keeps; empty if it keeps nothing."""
        kept = self._first_calls
        return [one for one in self.candidates if one.varies and kept.keeps_like(one)] if kept.answers else []

    def _explain_kept(self, matching: Sequence[Candidate]) -> Explanation:
        """The violations that the first candidate shows too in a run, or in a new shape, and those gone there."""
        violated = [matching[0].faults[0].requirement, *self.asked.violated_by(matching[0])]
        explained = (
            result.requirement
            for result in self.violations
            if result.requirement in violated or self._first_calls.explains(result, matching[0])
        )
        return Explanation(tuple(matching), dict.fromkeys(explained, (0,)))
