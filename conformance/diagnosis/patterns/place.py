"""A place: a part of the elements of results; and how much is wrong inside it and outside."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs
import numpy as np

from .formula_steps import Array, FormulaSteps, broadcast
from .observing import ObservedResult

#: An array that broadcasts to a result's shape, or one number for all of it; None if it does not apply to the case.
Quantity = Callable[[ObservedResult], "Array | float | None"]

#: A place needs at least this many wrong elements inside, and this many elements outside.
_FEW = 3
#: The outside must have at least this share of the elements inside: a place with nearly everything says nothing.
_SOME = 0.01
#: A place of whole cases needs instead at least this many cases with something wrong inside, and this many outside:
#: cases that are right may be small.
_FEW_CASES = 3
#: Without a relation, outside a place there must be this share of the elements inside.
_MUCH = 0.1


@attrs.frozen(eq=False)
class Place:
    """A part of the elements of a result, in words that follow "y is wrong"."""

    words: str
    #: Which elements of a result are in it, as an array that broadcasts; None if the place does not apply to the case.
    among: Quantity
    #: Whether it is where two things hold at once. Such places are many: a few cases may agree with one by chance.
    both: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is about the number of something."""
        return self.words.startswith(("where the number of", "where the length of"))

    @property
    def is_of_eps(self) -> bool:
        """Whether it is where eps, or something divided by it, has some size."""
        return bool(re.search(r"\beps\b", self.words))

    @property
    def is_of_absent_parameters(self) -> bool:
        """Whether it is where gamma or beta is None."""
        return bool(re.search(r"\b(gamma|beta) is None|neither gamma nor beta", self.words))

    def mask(self, one: ObservedResult) -> Array | None:
        """Which elements of a result are in it."""
        found = self._found(one)
        return None if found is None else broadcast(found > 0, one.got.shape)

    def counted(self, one: ObservedResult) -> tuple[int, int, int, int] | None:
        """
        How many elements are wrong and how many are judged, outside and then inside.

        None if the place does not apply to the case.
        """
        found = self._found(one)
        if found is None:
            return None
        if not found.ndim:  # the whole case is on one side, as it is for most places
            if np.isnan(found):
                return 0, 0, 0, 0
            return (0, 0, *one.counts) if found > 0 else (*one.counts, 0, 0)
        known = one.judged & ~np.isnan(found)  # where roundings decide, an element is neither in nor out
        inside = known & (found > 0)
        wrong, judged, inside_wrong, inside_judged = (
            int(np.count_nonzero(some)) for some in (one.wrong & known, known, one.wrong & inside, inside)
        )
        return wrong - inside_wrong, judged - inside_judged, inside_wrong, inside_judged

    def _found(self, one: ObservedResult) -> Array | None:
        """What says which elements are in it: of the result's shape, or one number for the whole case."""
        found = self.among(one)
        if found is None:
            return None
        array = np.asarray(found, np.float64)
        try:
            return broadcast(array, one.got.shape) if array.ndim else array
        except ValueError:
            return None


EVERYWHERE = Place("", lambda one: True)


def where(one: ObservedResult, place: Place | None) -> Array:
    """Which elements of a result are in a place; without a place, those that are wrong."""
    if place is None:
        return one.wrong
    mask = place.mask(one)
    return np.zeros(one.got.shape, bool) if mask is None else mask


@attrs.frozen
class Share:
    """How many elements are wrong and how many are judged, outside a place and inside it."""

    outside_wrong: int
    outside: int
    inside_wrong: int
    inside: int
    #: How many cases lie outside, how many inside, and how many of these are wrong; 0 each if a case lies in both.
    cases_outside: int = 0
    cases_inside: int = 0
    cases_wrong: int = 0

    @property
    def explains(self) -> bool:
        """Whether nothing outside is wrong, and enough there was looked at."""
        enough = self.outside >= max(_FEW, _SOME * self.inside) and self.inside_wrong >= _FEW
        enough = enough or min(self.cases_outside, self.cases_wrong) >= _FEW_CASES
        return enough and not self.outside_wrong

    @property
    def contrasts(self) -> bool:
        """Whether so much was looked at outside that it is no accident that nothing is wrong there."""
        enough = self.cases_outside >= max(_FEW_CASES, _MUCH * self.cases_inside)
        return self.outside >= _MUCH * self.inside or enough

    @property
    def exact(self) -> bool:
        """Whether everything inside is wrong, and nothing outside."""
        return self.outside > 0 and self.inside > 0 and not self.outside_wrong and self.inside_wrong == self.inside

    @property
    def rate(self) -> float:
        """The share of the place that is wrong."""
        return self.inside_wrong / max(self.inside, 1)


def share(place: Place, seen: Sequence[ObservedResult], *, explaining: bool = False) -> Share | None:
    """The share of a place over everything seen; with ``explaining``, None as soon as something outside is wrong."""
    counts: list[tuple[int, int, int, int]] = []
    for one in seen:
        counted = place.counted(one)
        if counted is None or (explaining and counted[0]):
            return None
        counts.append(counted)
    if not counts:
        return Share(0, 0, 0, 0)
    elements = (sum(each) for each in zip(*counts, strict=True))
    whole = not any(outside and inside for _, outside, _, inside in counts)
    cases = [(outside > 0, inside > 0, wrong > 0) for _, outside, wrong, inside in counts]
    return Share(*elements, *(map(sum, zip(*cases, strict=True)) if whole else ()))


def in_x_shape(quantity: Callable[[ObservedResult], Array]) -> Quantity:
    """A quantity of each value; None for a result without x's shape."""
    return lambda one: quantity(one) if one.has_x_shape else None


def by_group(quantity: Callable[[FormulaSteps], Array]) -> Quantity:
    """A quantity of each group, for all of its values."""
    return in_x_shape(lambda one: one.steps.back(np.reshape(quantity(one.steps), (-1, 1))))
