"""Places: where a result is wrong, and where it is right, among cases, groups and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from .case_places import MIXED, case_places
from .measured_places import measured_places, measures
from .observing import ObservedResult
from .place import Place, Share, share, where
from .value_places import value_places

#: Places in which a relation is searched.
_TRIED = 3
#: Most of the cases of a place: this share. The others may have constant groups, in which a wrong divisor is none.
_MOST = 0.7
#: If each of more cases than these is wrong in a place, and no case outside, that is no accident.
_FEW = 3
#: A place that is wrong only in part is named if at least this many cases are wrong, and this share of the place.
_TIMES, _PART = 5, 0.2
#: Places by size. Large cases are few and have easy values: if nothing is wrong there, that says nothing about sizes.
_SIZES = (
    *("where the number of groups", "where the number of values", "where the number of samples"),
    *("where the length of the first axis", "in the first", "after the"),
)
#: Of a place without a relation, this share is wrong.
_NEARLY_ALL = 0.97


def place_of_cases(operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> Place | None:
    """The place that explains whole cases exactly, each case being one element; None if there is none."""
    sizes = measured_places(seen, [one for one in measures(operator) if one.whole and not one.numbers])
    for place in (*case_places(operator), *sizes):
        parts = [share(place, some) for some in (seen, fresh)]
        if all(one is not None and one.exact for one in parts):
            return place
    return None


def _places(operator: str, seen: Sequence[ObservedResult]) -> list[Place]:
    """All places where something may be wrong, the plainest first."""
    return [*case_places(operator), *value_places(operator), *measured_places(seen, measures(operator))]


def _explaining(places: Sequence[Place], seen: Sequence[ObservedResult]) -> list[tuple[Place, Share]]:
    """Those that explain what is wrong, each with its share."""
    seen = sorted(seen, key=lambda one: not one.wrong.any())  # what is wrong outside a place then shows at once
    shares = [(place, share(place, seen, explaining=True)) for place in places]
    return [(place, part) for place, part in shares if part is not None and part.explains]


def places_of(operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> list[Place]:
    """
    A few places that hold everything wrong in both seen and fresh cases, those with the highest share wrong first.
    """
    found = _explaining(_places(operator, seen), seen)
    found.sort(key=lambda one: -round(one[1].rate, 1))
    kept = [one for one, _ in _explaining([one for one, _ in found], fresh)]
    # The formula of one mode may be wrong by so little that few values show it.
    return [*kept[:_TRIED], *(one for one in kept[_TRIED:] if one.words in ("in training", "in inference"))]


def places_of_cases(operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> Iterator[Place]:
    """
    The places of whole cases that hold everything wrong, however much of them is right; the smallest first.

    Those by the number of something are left out: with few wrong cases, some divide their numbers by chance.
    """
    found = _explaining([one for one in case_places(operator) if not one.counts], seen)
    for place, _ in sorted(found, key=lambda one: one[1].inside):
        if _explaining([place], fresh):
            yield place


def place_of_wrong_cases(
    operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult], *, mostly: bool = False
) -> Place | None:
    """
    The place of whole cases of which each has something wrong, and none outside; None if there is none.

    It may be where two things hold at once: a part is given, and x has three axes. With ``mostly``, most of its cases
    have something wrong; then it does not begin at some size, since large cases are few. Still fewer cases are in one
    place: some size separates their wrong ones by chance.
    """
    every, whole = [*seen, *fresh], [one for one in case_places(operator) if not one.counts]
    if (
        place := _of_wrong_cases([*whole, *_by_size(operator, every, mostly=mostly)], every, mostly=mostly)
    ) is not None:
        return place
    for outer in whole:
        part = share(outer, every, explaining=True)
        if part is None or not part.outside or part.cases_wrong <= _FEW:
            continue
        inner = _of_wrong_cases(whole, [one for one in every if _is_inside(one, outer)], mostly=mostly)
        if inner is not None and inner.words.startswith(_WHERE):
            return _both(outer, inner)
    return None


_WHERE = "where "


def _is_inside(one: ObservedResult, place: Place) -> bool:
    mask = place.mask(one)
    return mask is not None and bool(mask.all())


def _both(outer: Place, inner: Place) -> Place:
    """The place where both are."""
    then = f"and {inner.words[len(_WHERE) :]}" if _WHERE in outer.words else inner.words
    return Place(f"{outer.words} {then}", lambda one: where(one, outer) & where(one, inner), both=True)


def _by_size(operator: str, every: Sequence[ObservedResult], *, mostly: bool) -> Iterator[Place]:
    counted = [one for one in measures(operator) if one.whole and not one.numbers]
    yield from measured_places(every, [attrs.evolve(one, sides=(-1.0,)) for one in counted] if mostly else counted)


def _of_wrong_cases(places: Sequence[Place], every: Sequence[ObservedResult], *, mostly: bool) -> Place | None:
    for place in places:
        part = share(place, every, explaining=True)
        if part is None or not (part.explains and part.contrasts):
            continue
        if part.cases_wrong > _FEW and part.cases_wrong >= (_MOST if mostly else 1) * part.cases_inside:
            return place
    return None


def place_of_some(operator: str, seen: Sequence[ObservedResult]) -> Place | None:
    """A place with nothing wrong outside, much wrong inside, and at least as many elements outside; None if none."""
    if sum(one.wrong.any() for one in seen) < _TIMES:
        return None
    explaining = _explaining(_places(operator, seen), seen)
    # Each of these cases has a twin in one dtype, so it matters little how many of its values are wrong.
    mixed = next((place for place, _ in explaining if place.words == MIXED), None)
    if mixed is not None:
        return mixed
    found = [
        (" divided by " not in place.words, -part.rate, place)  # a ratio is nearer to the cause than a size
        for place, part in explaining
        if part.rate >= _PART and part.outside >= part.inside and not place.words.startswith(_SIZES)
    ]
    return min(found, key=lambda one: one[:2])[2] if found else None


def is_nearly_all_wrong(place: Place, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> bool:
    """Whether nearly all of a place is wrong and enough right values lie outside, so that it is not an accident."""
    parts = [share(place, some) for some in (seen, fresh)]
    return all(one is not None and one.rate >= _NEARLY_ALL and one.contrasts for one in parts)
