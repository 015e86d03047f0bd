"""The search for a second mistake, which explains the violations that the first one leaves."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from .candidates import Candidate, paired
from .question import Question
from .search import ASKED_AGAIN, Found, Search


@attrs.define(slots=False)
class Second(Search):
    """
    The search for a second mistake in a subject of which one is known.

    Two unrelated mistakes are not found together, because the most telling violations may all belong to one of them. If
    violations are left, each mistake against one of those requirements is tried together with the first.
    """

    first: Found | None = None

    @classmethod
    def beside(cls, search: Search, first: Found) -> Second:
        """The search for what a first mistake leaves. It keeps all questions and answers of the earlier search."""
        second = cls(search.subject, search.violations, search.satisfied, search.known)
        vars(second).update(vars(search))
        second.first = first
        return second

    def found(self) -> Found | None:
        """The first mistake with a second that explains more; None if there is no such second."""
        assert self.first is not None
        if self.subject.slow or any(len(one.faults) > 1 for one in self.first.candidates):
            return None
        if self._varying is not None:
            # Where the target is off by a rounding, every function that is right there answers as it does.
            telling = [name for name, question in self._broken.items() if self.answer(question).telling]
            left = [name for name in telling if not self._may_be_of_the_first(name)]
            named = [one for one in self._both(left) if self._answers_its_own(one) and self._varying.alike(one)]
            return self._explained_to_vary(named) if named else None
        left = [name for name, question in self._broken.items() if not self._is_of_the_first(question)]
        named = self._survivors([one for one in self._both(left) if self._is_it(one, left)])
        return self._explained(named) if named else None

    def _is_it(self, both: Candidate, left: list[str]) -> bool:
        """Whether both together answer as the target does."""
        return self._answers_its_own(both) and self._agrees(both, self._asked_of(left, both))

    def _answers_its_own(self, both: Candidate) -> bool:
        """
        Whether both answer the requirement of the second mistake as the target does.

        Only the first mistake may leave gradients to follow from a wrong formula, or prove nothing where they are not
        finite.
        """
        own = next(fault.requirement for fault in both.faults if fault.name not in self._known)
        return all(self._same(both, question) for question in (self._broken[own], *self._asked_anew([own])))

    @property
    def _known(self) -> set[str]:
        """The names of the first mistake; several if no question tells them apart."""
        assert self.first is not None
        return {name for one in self.first.candidates for name in one.names}

    def _is_of_the_first(self, question: Question) -> bool:
        assert self.first is not None
        return any(self._same(one, question) for one in self.first.candidates)

    def _may_be_of_the_first(self, name: str) -> bool:
        """Whether the first mistake explains a violation, or shows it by itself in one of several calls."""
        assert self.first is not None
        question = self._broken[name]
        asked = (question.put_to(one.subject) for one in self.first.candidates for _ in range(ASKED_AGAIN))
        return name in self.first.explains or any(answer.words for answer in asked)

    def _both(self, left: list[str]) -> Iterator[Candidate]:
        """Each first mistake, paired with each mistake against a requirement that is left."""
        assert self.first is not None
        for other in self._candidates:
            if other.faults[0].requirement in left and other.faults[0].name not in self._known:
                for first in self.first.candidates:
                    both = paired(first, other)
                    if both is not None:
                        yield both

    def _asked_of(self, left: list[str], both: Candidate) -> list[Question]:
        """The other questions that both together have to answer as the target does."""
        known = self._questions([question for name, question in self._broken.items() if name not in left])
        return [*known, *(self._broken[name] for name in left if both.answer(self._broken[name]).words)]
