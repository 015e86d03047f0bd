"""Thresholds: up to which size everything is right, and from which on it is wrong, found by bisection."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ...cases.case import Case
from ...cases.sizes import Extent, extents, sized
from .observing import Observer, Seen

#: Sizes at which a fault of size is looked for, past the limits of blocks.
_LOOKED_AT = (9, 65, 129, 257, 513, 1025, 2049, 4097)
#: Sizes above the first wrong one that show whether it is wrong from there on, as multiples of it and what is added.
_ABOVE = ((1, 1), (1, 2), (1, 5), (1.5, 1), (2, -1), (2, 4), (3, 1))
#: Sizes below the last right one, as parts of it.
_BELOW = (0.95, 0.75, 0.5, 0.3)

#: What extents count, in words.
_WORDS = {
    "features": "values in a group",
    "groups": "groups",
    "channels of a group": "channels in a group",
}


@attrs.frozen
class Threshold:
    """Where wrong results begin along one extent."""

    extent: Extent
    right_up_to: int
    wrong_from: int
    #: Whether every size that was tried above is wrong too.
    lasting: bool
    #: Cases at and above it.
    cases: tuple[Case, ...]

    @property
    def counted(self) -> str:
        """What the extent counts."""
        name, _, mode = self.extent.name.partition(", ")
        return _WORDS.get(name, name) + (f" in {mode}" if mode else "")

    @property
    def begins(self) -> str:
        """From where on, in words."""
        return f"from {self.wrong_from} {self.counted} on" if self.lasting else f"at {self.wrong_from} {self.counted}"

    @property
    def words(self) -> str:
        """The same as a clause, with what was found right."""
        if self.lasting:
            return f"right up to {self.right_up_to} {self.counted}, wrong from {self.wrong_from} on"
        return f"wrong at {self.wrong_from} {self.counted}, and not at every larger number; right at {self.right_up_to}"


def thresholds(observer: Observer, operator: str) -> list[Threshold]:
    """Where wrong results begin, extent by extent; where calls are slow, they are too many for that."""
    if observer.most is not None:
        return []
    return [found for extent in extents(operator) if (found := _of(observer, operator, extent)) is not None]


def _of(observer: Observer, operator: str, extent: Extent) -> Threshold | None:
    def case(size: int) -> Case | None:
        return observer.case(sized(operator, extent, size))

    def wrong(size: int) -> bool | None:
        at = case(size)
        return None if at is None else _is_wrong([*observer.seen([at])])

    low, high = 1, 0
    for size in _LOOKED_AT:
        if size > extent.largest:
            break
        found = wrong(size)
        if found is None:
            return None
        if found:
            high = size
            break
        low = size
    if not high or low == 1:
        return None
    return _bisected(extent, low, high, case, wrong)


def _bisected(
    extent: Extent, low: int, high: int, case: Callable[[int], Case | None], wrong: Callable[[int], bool | None]
) -> Threshold:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong(middle) else (middle, high)
    above = sorted({int(high * times) + more for times, more in _ABOVE} - {high})
    above = [size for size in above if high < size <= extent.largest]
    below = sorted({max(2, int(low * share)) for share in _BELOW})
    lasting = all(wrong(size) for size in above) and not any(wrong(size) for size in below)
    cases = tuple(at for size in (high, *above) if (at := case(size)) is not None)
    return Threshold(extent, low, high, lasting, cases)


def _is_wrong(seen: list[Seen]) -> bool:
    return any(one.wrong.any() for one in seen)
