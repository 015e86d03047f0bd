"""The search for a second mistake, which explains the violations that the first one leaves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import attrs

from ..checks.registry import COSTLY
from ..judging.truth import is_about_gradients
from .answers import Answer
from .asked_subject import AskedSubject
from .candidates import Candidate, paired
from .explanation import ASKED_AGAIN, Explanation
from .following import follow
from .question import Question
from .search import Search


@attrs.frozen(slots=False)
class SecondSearch:
    """
    The search for a second mistake in a subject of which one is known; it knows all answers of the first search.

    Two unrelated mistakes are not found together, because the most telling violations may all belong to one of them. If
    violations are left, each mistake against one of those requirements is tried together with the first.
    """

    search: Search
    first: Explanation

    @property
    def _asked(self) -> AskedSubject:
        return self.search.asked

    def found(self) -> Explanation | None:
        """The first mistake with a second that explains more; None if there is no such second."""
        if self._asked.subject.always_slow or any(len(one.faults) > 1 for one in self.first.candidates):
            return None
        varying, checks = self.search.varying, self._asked.violated_checks
        if varying is not None:
            # Where the target is off by a rounding, every function that is right there answers as it does.
            clear = [name for name, question in checks.items() if self._asked.answer(question).clearly_wrong]
            left = [name for name in clear if not self._first_may_explain(name)]
            pairs = (one for one in self._pairs_for(left) if self._agrees_on_second(one))
            matching = [one for one in pairs if varying.changes_like(one)]
            return Explanation.of_varying(matching, self._asked) if matching else None
        left = [name for name, question in checks.items() if not self._first_accounts_for(question)]
        pairs = (one for one in self._pairs_for(left) if self._agrees_on_second(one))
        agreeing = [one for one in pairs if self._asked.agrees(one, self._other_questions(left, one))]
        matching = [one for one in self.search.survivors(agreeing) if self._agrees_on_second(one, elsewhere=True)]
        return Explanation.of(matching, self._asked) if matching else None

    def _agrees_on_second(self, both: Candidate, *, elsewhere: bool = False) -> bool:
        """
        Whether both answer the requirement of the second mistake as the target does; ``elsewhere``: on other cases too.

        Only the first mistake may leave gradients to follow from a wrong formula, or prove nothing where they are not
        finite.
        """
        own = next(fault.requirement for fault in both.faults if fault.name not in self._first_names)
        shown = self._asked.violated_checks[own]
        others = self._asked.on_other_cases(shown) if elsewhere and own not in COSTLY else ()
        questions = (shown, *self._asked.fresh_checks_of([own]), *others)
        return all(self._asked.same(both, question) for question in questions)

    @property
    def _first_names(self) -> set[str]:
        """The names of the first mistake; several if no question tells them apart."""
        return {name for one in self.first.candidates for name in one.names}

    def _first_accounts_for(self, question: Question) -> bool:
        """Whether the first mistake answers as the target does, apart from derivatives that follow from its formula."""
        if any(self._asked.same(one, question) for one in self.first.candidates):
            return True
        return (question.derivative or self._first_agrees_on_outputs(question)) and self._derivatives_follow

    def _first_agrees_on_outputs(self, question: Question) -> bool:
        """Whether the comparisons of a check agree that are not about gradients."""
        inputs = question.case.inputs

        def of_outputs(answer: Answer) -> Answer:
            kept = tuple(one for one in answer.comparisons if not is_about_gradients(one.output, inputs))
            return attrs.evolve(answer, comparisons=kept)

        here = of_outputs(self._asked.answer(question))
        return bool(here.comparisons) and any(
            here.agrees(of_outputs(one.answer(question))) for one in self.first.candidates
        )

    @cached_property
    def _derivatives_follow(self) -> bool:
        """Whether the target's gradients are not the first mistake's own, but the derivatives of its formula."""
        plain = self._asked.plain_questions
        asked = [one for one in plain if one.derivative and not self._asked.is_unsupported(one)]
        for first in self.first.candidates:
            others = [one for one in asked if not self._asked.same(first, one)]
            if others and all(follow(first, one, self._asked.answer(one)) for one in others):
                return True
        return False

    def _first_may_explain(self, name: str) -> bool:
        """Whether the first mistake explains a violation, or shows it by itself in one of several calls."""
        question = self._asked.violated_checks[name]
        asked = (question.answered_by(one.subject) for one in self.first.candidates for _ in range(ASKED_AGAIN))
        return name in self.first.explains or any(answer.words for answer in asked)

    def _pairs_for(self, left: list[str]) -> Iterator[Candidate]:
        """Each first mistake, paired with each mistake against a requirement that is left."""
        for other in self.search.candidates:
            if other.faults[0].requirement in left and other.faults[0].name not in self._first_names:
                for first in self.first.candidates:
                    both = paired(first, other)
                    if both is not None:
                        yield both

    def _other_questions(self, left: list[str], both: Candidate) -> list[Question]:
        """The other questions that both together have to answer as the target does."""
        checks = self._asked.violated_checks
        known = self._asked.questions([question for name, question in checks.items() if name not in left])
        return [*known, *(checks[name] for name in left if both.answer(checks[name]).words)]
