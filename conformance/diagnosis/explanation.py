"""Explanations: the violations that a mistake shows too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ..checks.derivatives import OF_GRADIENTS
from .asked_subject import AskedSubject
from .candidates import Candidate

#: Times a violated check is repeated on a function whose calls vary: enough to meet a right call if one in three is.
ASKED_AGAIN = 5


@attrs.frozen(eq=False)
class Explanation:
    """An explanation of violations: candidates that no question tells apart, and the requirements they explain."""

    candidates: tuple[Candidate, ...]
    #: By requirement, the places of a candidate's faults that violate it by themselves; all places if none does.
    explains: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, matching: Sequence[Candidate], asked: AskedSubject) -> Explanation:
        """
        The violations that the first candidate shows too, each with the faults that show it by themselves.

        Where the formula is wrong, wrong gradients count too, because they were found to be its derivatives. Higher
        derivatives do not count then: nothing is known about them. Where only gradients are wrong, their derivatives
        count. If a function remembers earlier calls, a violation that
        is gone after another call follows from that.
        """
        candidate = matching[0]
        alone = _each_alone(candidate, asked)
        explained, wrong = {}, asked.has_wrong_values(candidate)
        for name, question in asked.maker.violated_checks.items():
            gradient = question.derivative and asked.maker.checks[name].raising != "unsupported"
            forgotten = question.preceded_by is not None and not asked.answer(question).words
            follows = asked.has_wrong_gradients(candidate) if name in OF_GRADIENTS else gradient and wrong
            if candidate.answer(question).words or forgotten or follows:
                places = tuple(place for place, one in enumerate(alone) if one.answer(question).words)
                explained[name] = places or tuple(range(len(alone)))
        return cls(tuple(matching), explained)

    @classmethod
    def of_varying(cls, matching: Sequence[Candidate], asked: AskedSubject) -> Explanation:
        """
        The violations in a run of the first candidate, each with the faults that show it by themselves.

        A violation that the target shows only in some calls belongs to the fault whose calls change.
        """
        alone = _each_alone(matching[0], asked)
        violated = [{one.faults[0].requirement, *asked.violated_by(one)} for one in alone]
        together = asked.violated_by(matching[0]) if len(alone) > 1 else ()
        explained = {}
        for name, question in asked.violated_checks.items():
            places = tuple(place for place, names in enumerate(violated) if name in names)
            if not places and name in together:
                places = tuple(range(len(alone)))
            elif not places and any(not question.answered_by(asked.subject).words for _ in range(ASKED_AGAIN)):
                places = (next(place for place, one in enumerate(alone) if one.varies),)
            if places:
                explained[name] = places
        return cls(tuple(matching), explained)


def _each_alone(candidate: Candidate, asked: AskedSubject) -> list[Candidate]:
    """A candidate for each of the faults that one has together."""
    return [Candidate((fault,), asked.as_asked) for fault in candidate.faults]
