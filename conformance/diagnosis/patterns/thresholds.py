"""Thresholds: the sizes that are wrong: from one size on, up to one, within a range, or by multiples of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import cycle, islice

import attrs
import numpy as np

from ....spec.operators import Groups
from ...cases.case import Case
from ...cases.description import Description
from ...cases.sizes import Extent, extents, place_of, sized
from .case_places import samples_of
from .numbers import written_share
from .observing import Observer
from .pattern import WrongResult
from .size_rules import SizeRule, from_on, of_blocks, within

#: Sizes at which a fault of size is searched, just past the limits of blocks.
_LOOKED_AT = (9, 65, 129, 257, 513, 1025, 2049, 4097)
#: Sizes above the first wrong one that show whether all larger ones are wrong: (factor of it, number added).
_ABOVE = ((1, 1), (1, 2), (1, 5), (1.5, 1), (2, -1), (2, 4), (3, 1))
#: Sizes below the last right one, as parts of it.
_BELOW = (0.95, 0.75, 0.5, 0.3)
#: Small sizes, all of which are wrong where a path for small sizes is.
_SMALL = (3, 4, 5, 7, 8, 9)
#: More calls of the last right and of the first wrong size, so that a race seldom passes for a limit.
_AGAIN = 3
#: Wrong results are examined up to this many times the first wrong size.
_NEAR = 3
#: The values of two sizes change the same error by less than this factor; those of many sizes by less than its square.
_ALIKE = 2
#: Powers of two, and sizes with many divisors. If they are right, a block that divides them may be the reason.
_POWERS = tuple(1 << power for power in range(1, 14))
_DIVISIBLE = (48, 96, 192, 720, 768, 1000, 2520, 3072, 3840)

#: Extents in words.
_WORDS = {
    "features": "values in a group",
    "groups": "groups",
    "channels of a group": "channels in a group",
}
#: Fields of a case with as many values in a group but few positions, and what is counted where positions are not.
_FEW_POSITIONS: Mapping[Groups, tuple[Callable[[int], Mapping[str, int]], str]] = {
    Groups.CHANNEL: (lambda n: {"samples": n, "rank": 2}, "values in a channel"),
    Groups.SAMPLE_CHANNELS: (lambda n: {"width": n // 2}, "values in a group"),
}
#: How many times as much of the other extent shows whether a limit is one on the number of values in x.
_MORE = 4
#: By extent: less, and more, of the other one.
_OTHER_EXTENT: Mapping[str, tuple[Callable[[Description], Description], Callable[[Description], Description]]] = {
    "features": (
        lambda one: attrs.evolve(one, groups=one.groups[-1:], repeat=None),
        lambda one: attrs.evolve(one, repeat=_MORE * one.count_of_groups),
    ),
    "groups": (lambda one: attrs.evolve(one, n=2), lambda one: attrs.evolve(one, n=_MORE * one.n)),
}


@attrs.frozen
class Threshold:
    """The sizes of one extent that are wrong."""

    extent: Extent
    right_up_to: int
    rule: SizeRule
    #: Wrong cases.
    cases: tuple[Case, ...]
    #: What is counted, if it is not what the extent counts.
    instead: str = ""
    #: The place in the sweep whose shape its cases have; each has its own if there is none.
    place: int | None = None
    #: Whether its cases have the values of a case that is shown: those of the sweep are right at each size.
    like_shown: bool = False

    @property
    def _counted(self) -> str:
        """The name of the things that are counted."""
        name, _, mode = self.extent.name.partition(", ")
        return (self.instead or _WORDS.get(name, name)) + (f" in {mode}" if mode else "")

    def is_told_by(self, wrong: WrongResult) -> bool:
        """
        Whether a result without a relation is wrong after the same number of other things than those counted.

        In the sweep of one extent, others may be as many.
        """
        before, _, counted = ("" if wrong.place is None else wrong.place.words).partition(f" {self.right_up_to} ")
        others = before == "after the first" and counted.split()[0] != self._counted.split()[0]
        return others and wrong.relation is None

    @property
    def begins(self) -> str:
        """Where it begins, in words."""
        return self.rule.short.format(self._counted)

    @property
    def words(self) -> str:
        """The rule as a clause, with the sizes found right."""
        values = ", with values like those of a case below" if self.like_shown else ""
        return self.rule.clause.format(self._counted) + values


def thresholds(observer: Observer, violated: Sequence[Description], wrong: Sequence[Case]) -> Iterator[Threshold]:
    """
    The wrong sizes of each extent; ``violated``: cases whose sizes are tried too; ``wrong``: ordinary wrong cases.

    A rule by which one of those is right is none: the sweep has easy values. A target that is slow, or slow in new
    shapes, is not asked: that takes too many.
    """
    if observer.subject.slow:
        return
    shown = [(one, case) for one in violated if (case := observer.case(one)) is not None]
    cases = [case for _, case in shown]
    # The sweep has easy values. If none of its sizes is wrong, the values of a case that is wrong are swept.
    alike = islice((one for one, case in shown if _is_wrong(observer, case)), 1)
    for like in (None, *alike):
        swept = (one if like is None else _with_values_of(like, one) for one in extents(observer.operator))
        tried = (_of_extent(observer, one, cases) for one in swept)
        found = [_of_all_values(observer, one) for one in tried if one is not None]
        if like is not None:  # what is wrong at every size, by less and less, is not about sizes
            found = [attrs.evolve(one, like_shown=True) for one in found if one.right_up_to]
        values = (_of_values(observer, one) for one in found)
        yield from (one for one in values if one is not None)
        yield from (one for one in found if one.instead or not _is_refuted(observer, one, (*cases, *wrong)))
        if found:
            return


def _with_values_of(like: Description, extent: Extent) -> Extent:
    """The extent, swept with the values and the eps of a case."""

    def case(size: int, place: int) -> Mapping[str, object]:
        fields = extent.case(size, place)
        groups = tuple(islice(cycle(like.groups), len(fields["groups"])))  # type: ignore[arg-type]
        kept = {name: getattr(like, name) for name in ("eps", "gamma", "beta", "cotangent")}
        return {**fields, **kept, "groups": groups}

    return attrs.evolve(extent, case=case)


def _of_extent(observer: Observer, extent: Extent, shown: Sequence[Case]) -> Threshold | None:
    """The wrong sizes of an extent, among cases that are alike in all else; ``shown``: its sizes are tried too."""
    sizes = {size for one in shown if (size := _size_of(one, extent)) is not None} - {0, 1}
    found = _Sizes(observer, extent).rule_followed(sizes, shown)
    if found is None or place_of(found.right_up_to) == place_of(found.right_up_to + 1):
        return found
    # On either side of the limit the cases have another shape, which may be what is wrong with them.
    return _Sizes(observer, extent, place_of(found.right_up_to + 1)).rule_followed(sizes, shown)


def _of_values(observer: Observer, found: Threshold) -> Threshold | None:
    """The limit on the values of a group, if a limit on positions is one; few positions then show it too."""
    record = observer.subject.binding.record
    fields, counted = _FEW_POSITIONS.get(record.groups, (None, ""))
    if fields is None or record.channels_alone or not found.rule.goes_on:
        return None
    if found.extent.name.partition(", ")[0] != "positions":
        return None
    low, high = _next_to_limit(observer, found)
    few = (attrs.evolve(one, **fields(one.n)) for one in (low, high))  # type: ignore[arg-type]
    if [bool(_is_wrong_on(observer, one)) for one in few] != [False, True]:
        return None
    return attrs.evolve(found, rule=from_on(low.n, high.n), instead=counted)


def _of_all_values(observer: Observer, found: Threshold) -> Threshold:
    """The limit on the number of values in x, if that is what a limit on groups or on their values comes from."""
    others = _OTHER_EXTENT.get(found.extent.name)
    if others is None or not found.rule.goes_on or observer.subject.binding.record.groups is not Groups.TRAILING:
        return found
    low, high = _next_to_limit(observer, found)
    less, more = others
    if [_is_wrong_on(observer, one) for one in (less(high), more(low))] != [False, True]:
        return found
    sizes = (one.n * one.count_of_groups for one in (low, high))
    return attrs.evolve(found, rule=from_on(*sizes), instead="values in x")


def _sized(observer: Observer, extent: Extent, size: int, place: int | None) -> Description:
    return sized(observer.operator, extent, size, place=place)


def _next_to_limit(observer: Observer, found: Threshold) -> list[Description]:
    """The cases of the largest size that is right, and of the next one, which is wrong."""
    return [_sized(observer, found.extent, size, found.place) for size in (found.right_up_to, found.right_up_to + 1)]


@attrs.define
class _Sizes:
    """What is known about the sizes of one extent."""

    observer: Observer
    extent: Extent
    #: The place in the sweep whose shape all cases have; each has its own if there is none.
    place: int | None = None
    known: dict[int, bool | None] = attrs.field(factory=dict)

    def case(self, size: int) -> Case | None:
        """The case of a size."""
        return self.observer.case(_sized(self.observer, self.extent, size, self.place))

    def wrong(self, size: int) -> bool | None:
        """Whether a result is wrong at a size; None if the target does not take the case."""
        if size not in self.known:
            self.known[size] = _is_wrong_on(self.observer, _sized(self.observer, self.extent, size, self.place))
        return self.known[size]

    def rule_followed(self, sizes: Set[int], cases: Sequence[Case]) -> Threshold | None:
        """
        The rule that the sizes follow; None if no size is wrong beyond one that is right.

        ``sizes`` are tried too, and ``cases`` may refute a rule.
        """
        low, high = 1, 0
        for size in sorted({*_LOOKED_AT, *sizes}):
            if size > self.extent.largest:
                break
            found = self.wrong(size)
            if found is None:
                return None
            if found:
                high = size
                break
            low = size
        if not high:
            return None
        if low == 1:
            return self._up_to_some_size(high)
        low, high = self._neighbours(low, high, wrong_above=True)
        if not (self._stays(high, wrong=True) and self._stays(low, wrong=False)):
            return None
        # Where other extents may count too, a limit is first told in values (_of_values).
        if self.extent.name in _OTHER_EXTENT:
            rule, first = from_on(low, high), self.case(high)
            if first is None or any(_refutes(self.observer, one, self.extent, rule, first) for one in cases):
                return None
        rule = self._rule(low, high)
        # Only sizes not far above: farther up nearly everything is wrong, which hides the values that are right.
        near = [size for size, wrong in sorted(self.known.items()) if wrong and high <= size <= _NEAR * high + 1]
        at_these = tuple(at for size in near if (at := self.case(size)) is not None)
        return Threshold(self.extent, low, rule, at_these, place=self.place)

    def _up_to_some_size(self, wrong: int) -> Threshold | None:
        """The rule that all sizes up to one are wrong and all larger ones right; ``wrong``: a small wrong size."""
        right = next((size for size in _LOOKED_AT if wrong < size <= self.extent.largest and not self.wrong(size)), 0)
        if not right:
            return None
        wrong, right = self._neighbours(wrong, right, wrong_above=False)
        self._look([*self._least, *_SMALL, wrong // 2, 2 * right, 3 * right + 1, *_LOOKED_AT])
        clause = f"right from {right} {{0}} on, wrong up to {wrong}"  # what is wrong comes last: "there" follows it
        rule = SizeRule(lambda size: size <= wrong, clause, f"up to {wrong} {{0}}")
        small, share, beside, beyond = (
            _largest(one for size in sizes for one in self._errors(size, wrong))
            for sizes in (_SMALL[:2], (wrong,), (right,), (2 * right, 3 * right + 1))
        )
        if beside * _ALIKE >= share:  # the error goes on, and is allowed from there on
            if small > _ALIKE**2 * share:  # what is wrong at every size, by less and less, is not about sizes
                return None
            if beyond * _ALIKE**2 >= share:
                most = f"up to {written_share(share)} of the largest right value"
                error = f"by about as much at every number of {{0}}, {most}"
                clause = f"off {error}: that is allowed from {right} on, and wrong up to {wrong}"
                rule = attrs.evolve(rule, clause=clause)
        if not (self._holds(rule) and self._stays(wrong, wrong=True) and self._stays(right, wrong=False)):
            return None
        if self.extent.name in _OTHER_EXTENT:  # with less of the other extent a limit on all values would lie higher
            less, _ = _OTHER_EXTENT[self.extent.name]
            if _is_wrong_on(self.observer, less(_sized(self.observer, self.extent, right, self.place))) is not False:
                return None
        at_these = (self.case(size) for size, is_wrong in sorted(self.known.items()) if is_wrong)
        return Threshold(self.extent, 0, rule, tuple(case for case in at_these if case is not None))

    def _errors(self, size: int, wrong: int) -> Iterator[float]:
        """The errors at a size, of the results that are wrong at another, in parts of their largest right value."""
        cases = [self.case(one) for one in (wrong, size)]
        there, here = ([] if case is None else [*self.observer.observed([case])] for case in cases)
        names = {one.name for one in there if one.wrong.any()}
        for one in here:
            if one.name in names and one.judged.any():
                off, right = np.abs(one.got - one.expected)[one.judged], np.abs(one.expected[one.judged])
                yield float(off.max() / right.max()) if right.max() else 0.0

    def _neighbours(self, low: int, high: int, *, wrong_above: bool) -> tuple[int, int]:
        """Between a right and a wrong size, by bisection: two sizes next to each other, one right and one wrong."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if bool(self.wrong(middle)) == wrong_above else (middle, high)
        return low, high

    def _stays(self, size: int, *, wrong: bool) -> bool:
        """Whether it is wrong, or right, each time. A mistake of the first call, or of chance, is not about size."""
        case = self.case(size)
        if case is None:
            return False
        for _ in range(_AGAIN):
            self.observer.forget(case)
            if _is_wrong(self.observer, case) != wrong:
                return False
        return True

    def _rule(self, low: int, high: int) -> SizeRule:
        """The plainest rule that all tried sizes follow, including those that distinguish it from other rules."""
        above = sorted({int(high * times) + more for times, more in _ABOVE} - {high})
        below = sorted({max(2, int(low * share)) for share in _BELOW})
        # A mistake that begins past a block may be absent at its multiples.
        self._look([*above, *below, 2 * low, 3 * low, 4 * low, *_DIVISIBLE, *_POWERS])
        for rule in self._rules(low, high):
            if self._holds(rule):
                self._look(rule.distinguishing)
                if self._holds(rule):
                    return rule
        where = f"at {high} {{0}}"
        return SizeRule(
            lambda size: True, f"wrong {where}, and not at every larger number; right at {low}", where, followed=False
        )

    @property
    def _least(self) -> Sequence[int]:
        """The smallest size, unless it is one value in a group: that is beta, whatever else is wrong."""
        return () if self.extent.name == "features" else (1,)

    def _look(self, sizes: Sequence[int]) -> None:
        for size in sizes:
            if 0 < size <= self.extent.largest:
                self.wrong(size)

    def _holds(self, rule: SizeRule) -> bool:
        """Whether every size that was tried follows a rule."""
        return all(wrong is None or wrong == rule.wrong(size) for size, wrong in self.known.items())

    def _rules(self, low: int, high: int) -> Iterator[SizeRule]:
        yield from_on(low, high)
        yield from of_blocks(low, high)
        last = self._last_of_band(high)
        if last is not None:
            yield self._within(low, high, last)

    def _within(self, low: int, high: int, last: int) -> SizeRule:
        """The rule of a band. Its end may be where an error that goes on, by less and less, begins to be allowed."""
        rule = within(low, high, last)
        share, beside = (_largest(self._errors(size, last)) for size in (last, last + 1))
        if last == high or beside * _ALIKE < share:
            return rule
        allowed = f"no more than is allowed from {last + 1} on"
        clause = f"right up to {low} {{0}}, wrong from {high} on, by less and less: {allowed}"
        return attrs.evolve(rule, clause=clause, short=f"from {high} {{0}} on")

    def _last_of_band(self, high: int) -> int | None:
        """The last wrong size before one that is right again."""
        right = min((size for size, wrong in self.known.items() if wrong is False and size > high), default=None)
        if right is None:
            return None
        last = max(size for size, wrong in self.known.items() if wrong and size < right)
        last, right = self._neighbours(last, right, wrong_above=False)
        self._look([*range(high, min(high + 3, last)), last - 1, right + 1, right + 2, right + 5, 2 * right + 3])
        return last


def _is_refuted(observer: Observer, found: Threshold, cases: Sequence[Case]) -> bool:
    """Whether one of the cases refutes a rule."""
    return any(_refutes(observer, one, found.extent, found.rule, found.cases[0]) for one in cases if found.cases)


def _refutes(observer: Observer, shown: Case, extent: Extent, rule: SizeRule, first: Case) -> bool:
    """Whether a case has a size that should be right, and a wrong result that the first wrong size has."""
    size = _size_of(shown, extent)
    if size is None or rule.wrong(size):
        return False
    there, here = ({one.name for one in observer.observed([case]) if one.wrong.any()} for case in (shown, first))
    return not there.isdisjoint(here)


def _size_of(case: Case, extent: Extent) -> int | None:
    """The size of a case in an extent; None in another mode, and where an extent is not one of x."""
    name, _, mode = extent.name.partition(", ")
    if mode and mode != ("training" if case.settings["training"] else "inference"):
        return None
    layout = case.layout
    if name in ("samples", "positions"):
        samples = samples_of(case)
        return samples if name == "samples" else case.x.size // max(samples * layout.parameters, 1)
    sizes = {
        "features": layout.size,
        "groups": case.settings.get("groups", layout.count),
        "channels": layout.parameters,
        "channels of a group": layout.width,
    }
    return sizes.get(name)


def _largest(errors: Iterable[float]) -> float:
    """The largest error; NaN if one of them is."""
    return float(np.max([0.0, *errors]))


def _is_wrong_on(observer: Observer, description: Description) -> bool | None:
    """Whether a result is wrong on the case of a description; None if the target does not take the case."""
    case = observer.case(description)
    return None if case is None else _is_wrong(observer, case)


def _is_wrong(observer: Observer, case: Case) -> bool:
    return any(one.wrong.any() for one in [*observer.observed([case])])
