"""A pattern: what is wrong with a target in words, and what proves it once more in another dtype."""

from __future__ import annotations

import attrs

from .places import Place
from .relation import Relation


@attrs.frozen(eq=False)
class Wrong:
    """How one result is wrong, or what it is made of."""

    #: What a sentence says it of: the result, or an inner value.
    name: str
    #: What it is beside the right result, and the number in that; None where no relation was found.
    relation: Relation | None = None
    number: float = 0.0
    #: Where it is wrong; None: no place was found that says it.
    place: Place | None = None
    #: What else is known of it: how far it is off.
    size: str = ""
    #: The result that shows an inner value; "" of a result itself.
    shown_by: str = ""

    @property
    def result(self) -> str:
        """The result that is wrong."""
        return self.shown_by or self.name

    @property
    def words(self) -> str:
        """The same as a clause."""
        return f"{self.name} is {self.told}"

    @property
    def told(self) -> str:
        """What follows its name and "is" or "are"."""
        if self.relation is not None and self.place is None:
            return f"{self.size}; there it is {self.relation.words(self.number)}"
        where = f" {self.place.words}" if self.place is not None and self.place.words else ""
        if self.relation is not None:
            return f"{self.relation.words(self.number)}{where}"
        return f"{self.size or 'wrong, and only'}{where}"


@attrs.frozen(eq=False)
class Pattern:
    """What is wrong, in words."""

    sentence: str
    #: The violated requirements on whose cases what it describes was seen, the most telling first.
    explains: tuple[str, ...]
    #: From where on, in words; empty where it shows from the smallest cases on.
    begins: str = ""
    #: The results of plain calls that it is about.
    wrong: tuple[Wrong, ...] = ()
