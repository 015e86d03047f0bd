"""
Spreads: the mean, variance and eps with which the formula returns the received y.

In each group, y - beta divided by gamma (x - mean) is the reciprocal root that was used; each value bounds it. If the
bounds agree for some centre, that centre was subtracted. The spread is then searched within the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from .eps_placements import EPS_PLACEMENTS, EpsPlacement
from .formula_steps import Array, FormulaSteps
from .moments import CENTRES, SPREADS, Column, group_mean
from .numbers import Interval, simplest, written
from .observing import ObservedResult
from .relation import EXTRA_ROUNDINGS, LinearRelation

#: The range of numbers that somebody may have written into a formula. A number outside comes from the data.
_SMALLEST_NUMBER, _LARGEST_NUMBER = 1e-16, 1e4
#: By this factor, two wrong values are different ones.
_DIFFERENT = 1.01
#: After this many relations that all bounds allow but the values do not, the bounds say too little.
_MOST_TRIED = 20


def spread_relations(seen: Sequence[ObservedResult]) -> Iterator[LinearRelation]:
    """Each centre and spread with which the formula returns y on everything seen, the plainest first."""
    # Results that are far off exclude most, so they come first.
    seen = sorted(seen, key=lambda one: not one.clearly_wrong)
    tried = 0
    spreads = _Spreads.of(seen)
    for words, centre in CENTRES:
        bounds = list(_all_bounds(seen, centre))
        if len(bounds) < len(seen):
            continue
        for variant in _allowed_variants(words, centre, spreads, bounds):
            relation = variant.relation()
            holds = relation.holds(0.0, seen, [np.ones(one.got.shape, bool) for one in seen])
            if holds and variant.predicts_several(seen):
                yield relation
            tried += 1
            if tried == _MOST_TRIED:
                return


@attrs.frozen(eq=False)
class _Variant:
    """The formula with a centre, a spread and a placement of eps; the right centre and spread have no words."""

    centre_words: str
    centre: Column
    spread_words: str
    spread: Column
    placement: EpsPlacement
    #: The k of the placement.
    number: float

    @property
    def is_right(self) -> bool:
        """Whether it is the right formula."""
        return not self.centre_words and not self.spread_words and self.number == self.placement.right

    def predicts_several(self, seen: Sequence[ObservedResult]) -> bool:
        """
        Whether it predicts two or more different wrong values, if its number was fitted: one value fits some number.

        Values are different if their distances from the centre are, by more than roundings or another mean change.
        """
        if self.number == self.placement.right:
            return True
        sizes = [np.abs(one.steps.data - one.steps.column(self.centre))[one.steps.rows(one.wrong)] for one in seen]
        some = np.concatenate(sizes)
        some = some[np.isfinite(some) & (some > 0)]
        return bool(some.size) and float(some.max()) > _DIFFERENT * float(some.min())

    def relation(self) -> LinearRelation:
        """y, as this formula gives it."""
        rounded = self._rounded if self.centre_words or self.spread_words else None
        return LinearRelation(self._words(), self._y, amplified=self._amplified, rounded=rounded)

    def _words(self) -> str:
        """In words, what replaces what."""
        changed = []
        if self.centre_words:
            changed.append(f"{self.centre_words} in place of the mean")
        if self.spread_words:
            changed.append(f"{self.spread_words} in place of var")
        if self.number != self.placement.right or not np.isfinite(self.placement.right):
            changed.append(f"{self.placement.words(written(self.number))} in place of sqrt(var + eps)")
        return f"what the formula gives with {' and '.join(changed)}"

    def _root(self, steps: FormulaSteps) -> Array:
        return self.placement.root(steps.column(self.spread), steps.eps, self.number)

    def _y(self, one: ObservedResult) -> Array:
        steps = one.steps
        xhat = (steps.data - steps.column(self.centre)) / self._root(steps)
        return steps.gamma * steps.back(xhat) + steps.beta

    def _amplified(self, one: ObservedResult) -> Array:
        return one.steps.back(1 / (one.steps.r * self._root(one.steps)))

    def _rounded(self, one: ObservedResult) -> Array:
        """
        The roundings of another centre or spread.

        A centre rounds a sum of all values, and its difference from each. The roundings of a spread count where the
        spread itself is no larger.
        """
        steps, root = one.steps, self._root(one.steps)
        largest = np.abs(steps.data).max() * (steps.n + EXTRA_ROUNDINGS) * one.values.unit
        beside = np.abs(steps.rows(steps.xhat)) / steps.r * np.square(largest / root) / root
        return np.abs(steps.gamma) * steps.back(largest / root + beside)


def _all_bounds(seen: Sequence[ObservedResult], centre: Column) -> Iterator[tuple[Array, Array]]:
    """The bounds of each, up to the first that has none."""
    for one in seen:
        found = _bounds(one, centre)
        if found is None:
            return
        yield found


def _bounds(one: ObservedResult, centre: Column) -> tuple[Array, Array] | None:
    """Bounds of the square of the root that divided each group; None if no root fits."""
    steps = one.steps
    if np.isnan(steps.column(centre)).all():
        return None
    top = steps.rows(one.got - steps.beta)
    below = steps.rows(steps.gamma) * (steps.data - steps.column(centre))
    slack = steps.rows(np.where(one.judged, one.slack, np.inf))
    slack = slack + EXTRA_ROUNDINGS * one.values.unit * np.abs(steps.rows(steps.beta))
    still = below == 0
    ratio = np.abs(top).max(axis=1, keepdims=True) / np.abs(below * steps.r).max(axis=1, keepdims=True)
    ratio = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    if centre is not group_mean:
        largest = np.abs(steps.data).max() * (steps.n + EXTRA_ROUNDINGS) * one.values.unit
        slack = slack + np.abs(steps.rows(steps.gamma)) * largest * np.where(np.isfinite(steps.r), steps.r, 0.0)
    slack = slack * ratio
    # Values that are not finite bound nothing. The relation itself is tested on them in the end.
    lost = ~np.isfinite(top)
    slack = np.where(lost, np.inf, slack)
    top = np.where(lost, 0.0, top)
    ends = np.where(still, -np.inf, (top - slack) / below), np.where(still, np.inf, (top + slack) / below)
    low = np.nan_to_num(np.minimum(*ends), nan=-np.inf).max(axis=1, keepdims=True)
    high = np.nan_to_num(np.maximum(*ends), nan=np.inf).min(axis=1, keepdims=True)
    if (low > high).any() or (high < 0).any():
        return None
    low = np.maximum(low, 0.0)
    return 1 / np.square(high), 1 / np.square(low)


@attrs.frozen(eq=False)
class _Spreads:
    """
    The spreads that apply to what was seen, each on every observation.

    They are stacked, so that all are tried together on an observation: that takes a tenth of the time.
    """

    seen: Sequence[ObservedResult]
    #: The words of each, and how it is computed.
    named: Sequence[tuple[str, Column]]
    #: For each observation, the spreads of its groups, shape (spreads, groups, 1).
    columns: Sequence[Array]

    @classmethod
    def of(cls, seen: Sequence[ObservedResult]) -> _Spreads:
        """The spreads that are a number in some group."""
        found = [(words, spread, [one.steps.column(spread) for one in seen]) for words, spread in SPREADS]
        found = [one for one in found if not all(np.isnan(values).all() for values in one[2])]
        columns = [np.stack([each[2][index] for each in found]) for index in range(len(seen))]
        return cls(seen, [(words, spread) for words, spread, _ in found], columns)

    def allowed(self, placement: EpsPlacement, bounds: Sequence[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
        """
        For each spread, the least and the largest number that all bounds allow, and whether any bounds it.

        The least is above the largest, or is NaN, if none is allowed.
        """
        count = len(self.named)
        lowest, highest, bounded = np.full(count, -np.inf), np.full(count, np.inf), np.zeros(count, bool)
        for one, column, (low, high) in zip(self.seen, self.columns, bounds, strict=True):
            base, slope = placement.of_groups(column, one.steps.eps)
            least, most = placement.transformed(low), placement.transformed(high)
            if placement.limit:
                added = placement.added(column, one.steps.eps)
                below, above = _limited(placement.limit, base, least - added, most - added)
                lows = np.where(np.isnan(below), -np.inf, below / slope)
                highs = np.where(np.isnan(above), np.inf, above / slope)
                bounded |= (np.isfinite(below) & np.isfinite(above) & (slope > 0)).any(axis=(1, 2))
            else:
                least, most = least - base, most - base
                lost = np.isnan(least) | np.isnan(most) | ~np.isfinite(slope)
                still = (slope == 0) & ~lost
                excluded = still & ((least > 0) | (most < 0))
                free, ends = still | lost, (least / slope, most / slope)
                lows = np.where(excluded, np.nan, np.where(free, -np.inf, np.minimum(*ends)))
                highs = np.where(free, np.inf, np.maximum(*ends))
                bounded |= ~free.all(axis=(1, 2))
            lowest, highest = np.maximum(lowest, lows.max(axis=(1, 2))), np.minimum(highest, highs.min(axis=(1, 2)))
            if not (lowest <= highest).any():
                break
        return lowest, highest, bounded


def _allowed_variants(
    centre_words: str, centre: Column, spreads: _Spreads, bounds: Sequence[tuple[Array, Array]]
) -> Iterator[_Variant]:
    """The formulas with this centre that every bound allows, the plainest first."""
    allowed = [spreads.allowed(placement, bounds) for placement in EPS_PLACEMENTS]
    for which, (words, spread) in enumerate(spreads.named):
        for placement, (low, high, bounded) in zip(EPS_PLACEMENTS, allowed, strict=True):
            number = _number(placement, Interval(float(low[which]), float(high[which]))) if bounded[which] else None
            if number is not None:
                variant = _Variant(centre_words, centre, words, spread, placement, number)
                if not variant.is_right:
                    yield variant


def _limited(limit: int, base: Array, least: Array, most: Array) -> tuple[Array, Array]:
    """Bounds of k slope, if the larger or smaller of it and base has to lie within the bounds."""
    if limit > 0:
        return np.where(least > base, least, -np.inf), most
    return least, np.where(most < base, most, np.inf)


def _number(placement: EpsPlacement, allowed: Interval) -> float | None:
    """The plainest of the allowed numbers; None if there is none, or if they are too many to mean one."""
    if allowed.empty:
        return None
    right = placement.right if np.isfinite(placement.right) else None
    if right is not None and allowed.low <= right <= allowed.high:
        return right
    if not np.isfinite(allowed.low) or not np.isfinite(allowed.high):
        return None
    if not allowed.known(right or 0.0) and not allowed.low <= 0 <= allowed.high:
        return None
    if placement.only is not None:
        return placement.only if allowed.low <= placement.only <= allowed.high else None
    number = simplest(allowed)
    return number if not number or _SMALLEST_NUMBER <= abs(number) <= _LARGEST_NUMBER else None
