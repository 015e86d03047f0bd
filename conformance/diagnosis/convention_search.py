"""
The search for a convention that excuses what no mistake explains in a 16-bit dtype.

A function written in the operations of a framework rounds after each of them. In 16 bits that alone violates many
requirements, and it hides a mistake that is plain in float32.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import Any

import attrs

from ...reference.formats import FORMATS
from ...spec.conventions import CONVENTIONS
from ...spec.identifiers import is_common
from ..cases.case import Case
from ..checks.registry import Check
from ..engine.declaration_search import later_values
from ..engine.judged_under import is_judged, leaves_some_unjudged
from ..engine.modes import checks_on, quick_cases
from ..engine.tally import stays_violated
from ..judging.library import Library, fitted
from ..judging.subject import Subject
from ..judging.verdicts import Result
from .convention_words import remedy_of, sentence_of
from .explanation import Explanation
from .question import Question
from .question_maker import is_about_derivatives
from .search import Search

#: Requirements about 16-bit data with float32 parameters; those of them that are about the dtypes of results.
_MIXED = ("CM-D1", "CM-D2", "CM-D3")
_DTYPES = frozenset({"CM-D2", "CM-D3"})

#: Requirements of an operator's own page that a class of storage has to excuse. Rounding between the steps shows in y
#: and its laws, or in several gradients; one requirement alone may be violated for any other reason.
_LEAST = 2

#: Cases of the deck on which a slow target has to hold under a class.
_CASES_SLOW = 8


@attrs.frozen
class Excuse:
    """A convention under which violations are gone, on the cases that showed them."""

    subject: Subject
    convention: str
    value: str
    #: The requirements that are satisfied under it, the most telling one first.
    excuses: tuple[str, ...]
    #: A mistake that explains what is violated even under it; None if that is not needed.
    beside: Explanation | None = None

    @property
    def declaration(self) -> str:
        """The convention as it is declared: "storage=H2"."""
        return f"{self.convention}={self.value}"

    @property
    def sentence(self) -> str:
        """What a function that needs the convention does."""
        return sentence_of([self.declaration])

    @property
    def remedy(self) -> str:
        """What to change."""
        return remedy_of([self.declaration])


def in_one_class(excuses: Sequence[Excuse]) -> list[Excuse]:
    """The excuses of several dtypes, those of storage with the weakest of their classes, which excuses them all."""
    weakest = max(
        (one.value for one in excuses if one.convention == "storage"), key=CONVENTIONS["storage"].index, default=""
    )
    return [attrs.evolve(one, value=weakest) if one.convention == "storage" else one for one in excuses]


@attrs.define(slots=False)
class ConventionSearch:
    """The search on one subject, after the search for mistakes known from other dtypes found none here."""

    search: Search
    #: Requirements that a wider dtype violates for no known reason: what is wrong there is not made by 16 bits.
    unexplained: Container[str] = ()
    #: The cases by the kind of their library: classes of storage have the same ones.
    _libraries: dict[tuple[Any, ...], Library] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        library = self.search.asked.library
        self._libraries = {library.kind: library}

    @cached_property
    def found(self) -> tuple[Excuse, ...]:
        """
        The excuses; none for a dtype that is not narrow, or if violations stay that no known mistake explains.

        Requirements of every operator (CM-) say too little about a formula to be excused alone.
        """
        if not FORMATS[self.search.subject.format].narrow:
            return ()
        excuse = self._of_storage()
        return () if excuse is None else (excuse, *self._of_mixed_dtypes(excuse))

    def _of_storage(self) -> Excuse | None:
        violations = [
            one
            for one in self.search.violations
            if one.requirement not in _DTYPES and one.requirement not in self.unexplained
        ]
        classes = self._classes()
        # The weakest class has the widest envelopes: what stays under it stays under every class.
        always = self._staying(violations, classes[-1]) if classes else violations
        for value in classes:
            stay = always if value == classes[-1] else self._staying(violations, value, always)
            gone = tuple(one.requirement for one in violations if one not in stay)
            if sum(not is_common(name) for name in gone) < _LEAST or self._says_nothing_about(gone, value):
                continue
            left = [one for one in stay if one.requirement not in _MIXED and not self._is_of_mixed_dtypes(one, value)]
            beside = None
            if left:
                # Rounding between steps changes what a wrong formula gives by more than the envelope of the right one.
                subject, known = self._under(storage=value), self.search.known
                under = Search(subject, left, self.search.satisfied, known)
                beside = under.violated_again if known else under.alone
            if (beside is not None or not left) and self._holds(gone, value, beside):
                own_first = tuple(sorted(gone, key=is_common))  # they tell most
                return Excuse(self.search.subject, "storage", value, own_first, beside)
        return None

    def _staying(self, violations: Sequence[Result], value: str, known: Sequence[Result] = ()) -> list[Result]:
        """The violations that stay under a class of storage, those included that are known to."""
        subject = self._under(storage=value)
        return [one for one in violations if one in known or self._stays(subject, one)]

    def _says_nothing_about(self, requirements: Sequence[str], value: str) -> bool:
        """Whether the wrong values of one kind are all where a class of storage promises nothing."""
        subject = self._under(storage=value)
        some = (one for one in self.search.violations if one.requirement in requirements)
        return leaves_some_unjudged(some, lambda one: is_judged(*self._asked_again(subject, one), one))

    def _holds(self, requirements: Sequence[str], value: str, beside: Explanation | None) -> bool:
        """
        Whether requirements hold under a class of storage on every case of the deck, not only on those of the report.

        A case that the accompanying mistake violates as well says nothing about the class. With such a mistake,
        derivatives are not compared: those of a wrong formula are wrong in other ways than its own.
        """
        promoted = any(
            self._is_of_mixed_dtypes(one, value) for one in self.search.violations if one.requirement in _DTYPES
        )
        subject = self._under(storage=value, **({"mixed_dtypes": "promoted"} if promoted else {}))
        asked = [check for check in checks_on(subject) if check.requirement in requirements]
        if beside is not None:
            asked = [check for check in asked if not is_about_derivatives(check)]
        deck, library = quick_cases(subject), self._library(subject)
        for description in deck[:_CASES_SLOW] if subject.always_slow else deck:
            fit = fitted(description, subject.binding)
            if fit is None:
                continue
            case = library.case(fit)
            for check in asked:
                if stays_violated([check], subject, case, fit):
                    question = Question(case, fit, check)
                    if beside is None or not beside.candidates[0].answer(question).words:
                        return False
        return True

    def _classes(self) -> Sequence[str]:
        """The classes of storage that are weaker than the declared one, in order."""
        subject = self.search.subject
        return later_values("storage", subject.conventions["storage"], subject.operator)

    def _of_mixed_dtypes(self, storage: Excuse) -> Iterator[Excuse]:
        left = [one for one in self.search.violations if one.requirement not in storage.excuses]
        if not left or self.search.subject.conventions["mixed_dtypes"] == "promoted":
            return
        gone = tuple(one.requirement for one in left if self._is_of_mixed_dtypes(one, storage.value))
        if _DTYPES.intersection(gone):
            subject = self._under(storage=storage.value, mixed_dtypes="promoted")
            yield Excuse(subject, "mixed_dtypes", "promoted", tuple(sorted(gone, key=lambda name: name not in _DTYPES)))

    def _is_of_mixed_dtypes(self, result: Result, storage: str) -> bool:
        """Whether a violation stays under a class of storage, and is gone if 16-bit data may be promoted too."""
        promoted = self._under(storage=storage, mixed_dtypes="promoted")
        return self._stays(self._under(storage=storage), result) and not self._stays(promoted, result)

    def _under(self, **conventions: str) -> Subject:
        """The subject, judged as if it declared these conventions."""
        subject = self.search.subject
        return attrs.evolve(subject, conventions={**subject.conventions, **conventions}, arithmetics={})

    def _stays(self, subject: Subject, result: Result) -> bool:
        """Whether a violation stays on the case that showed it."""
        return stays_violated(*self._asked_again(subject, result), result.violated_on)

    def _asked_again(self, subject: Subject, result: Result) -> tuple[list[Check], Subject, Case]:
        """The checks that a violation is about, the subject, and the case that showed it."""
        checks = [one for one in checks_on(subject) if one.requirement == result.requirement]
        return checks, subject, self._library(subject).case(result.violated_on)

    def _library(self, subject: Subject) -> Library:
        """The library of the cases that a subject takes."""
        made = subject.new_library()
        return self._libraries.setdefault(made.kind, made)
