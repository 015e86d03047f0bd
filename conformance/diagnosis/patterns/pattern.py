"""A pattern: what is wrong with a target in words, and the evidence to test it again in another dtype."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .place import Place
from .relation import LinearRelation

#: If there are more names than this, most are only counted: a case may have dozens of leaves.
MOST_NAMES = 5
_FIRST_NAMES = 2


@attrs.frozen(eq=False)
class WrongResult:
    """How one result is wrong, or what it equals."""

    #: The subject of the sentence: the result, or an inner value.
    name: str
    #: Its relation to the right result, and the number in that; None if no relation was found.
    relation: LinearRelation | None = None
    number: float = 0.0
    #: Where it is wrong; None if no place was found.
    place: Place | None = None
    #: What else is known: how far it is off.
    size: str = ""
    #: The result that shows an inner value; "" for a result itself.
    shown_by: str = ""
    #: Whether other ones of its values are wrong in other calls with the same arguments.
    varies: bool = False

    @property
    def result(self) -> str:
        """The result that is wrong."""
        return self.shown_by or self.name

    @property
    def predicate(self) -> str:
        """The words after its name and "is" or "are"."""
        if self.relation is not None and self.place is None:
            return f"{self.size}; there it is {self.relation.in_words(self.number)}"
        where = f" {self.place.words}" if self.place is not None and self.place.words else ""
        if self.relation is not None:
            return f"{self.relation.in_words(self.number)}{where}"
        return f"{self.size or 'wrong, and only'}{where}"


@attrs.frozen(eq=False)
class Pattern:
    """A description of what is wrong, in words."""

    sentence: str
    #: The violated requirements whose cases show what is described, the most telling first.
    explains: tuple[str, ...]
    #: Where it begins, in words; empty if the smallest cases show it.
    begins: str = ""
    #: The results of plain calls that it is about.
    wrong: tuple[WrongResult, ...] = ()
    #: Whether it tells what the values of plain calls are, or at which sizes they are wrong.
    tells_values: bool = False

    @property
    def tells_how_often_alone(self) -> bool:
        """Whether it tells neither where results are wrong nor what they are."""
        return bool(self.wrong) and all(one.relation is None and one.place is None for one in self.wrong)


def listed(names: Sequence[str]) -> str:
    """Some names in a row."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def with_verb(names: Sequence[str]) -> str:
    """Some names as the subject of a sentence: "y is", "y and dx are", "dx, dgamma and 40 others are"."""
    if len(names) > MOST_NAMES:
        names = [*names[:_FIRST_NAMES], f"{len(names) - _FIRST_NAMES} others"]
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"
