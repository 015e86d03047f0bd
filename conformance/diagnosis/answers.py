"""Answers of a target, or of a known mistake, to one question, and whether two answers are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ...reference.double_double import DD
from ...reference.formats import format_of
from ..judging.findings import ratios

#: Two functions that make the same mistake differ by the roundings of both; the envelope bounds those of each.
_TWO_FUNCTIONS = 2.0

#: A wrong step has roundings that the right one need not have: a few, of a value that the envelope does not know.
WRONG_STEP_ROUNDINGS = 4.0

#: An answer is clearly wrong if it is off by this many times what two functions with the same mistake may differ by. An
#: agreement is then accurate to a tenth of the error, so rounding cannot cause it.
CLEARLY_WRONG = 10.0


@attrs.frozen(eq=False)
class Values:
    """One output or gradient, or a law's combination of several, with the exact values and their envelope."""

    got: np.ndarray
    expected: np.ndarray
    envelope: np.ndarray
    #: Half a unit in the last place of 1 in the dtype of the values.
    unit: float
    #: The further change that roundings may make in the results of a wrong formula (sensitivity.py).
    unstable: np.ndarray | float = 0.0

    @classmethod
    def of(cls, got: np.ndarray, exact: DD, bound: np.ndarray) -> Values:
        """
        The values of a result. A value that is not finite where that is allowed counts as exact.

        Beyond the largest number of a dtype an infinity is right; where the envelope is infinite, anything is.
        """
        wide, expected = got.astype(np.float64), exact.hi
        if not np.isfinite(wide).all():
            may_be = (ratios(got, exact, bound) <= 0) & ~np.isfinite(wide) & np.isfinite(expected)
            expected = np.where(may_be, wide, expected)
        return cls(wide, expected, np.broadcast_to(bound, got.shape), format_of(got.dtype).unit_roundoff)

    def slack(self) -> np.ndarray:
        """
        The largest difference allowed to another function with the same mistake.

        The envelope is that of the right values. A mistake can make values larger, and their roundings with them, by
        the ratio of the largest values.
        """
        right, here = np.abs(self.expected), np.abs(self.got)
        larger = _largest(here) / _largest(right) if _largest(right) else 1.0
        return (
            _TWO_FUNCTIONS * (self.envelope * max(larger, 1.0) + WRONG_STEP_ROUNDINGS * self.unit * here)
            + self.unstable
        )

    def worst_error(self) -> float:
        """How far the worst value is from the exact one, in units of the slack; infinite if it is not finite."""
        return _worst(self.got, self.expected, self.slack())

    @property
    def outside_envelope(self) -> np.ndarray:
        """Where the values are wrong by more than the envelope, or are not finite and should be."""
        judged = np.isfinite(self.envelope) & np.isfinite(self.expected)
        return judged & ~(np.abs(self.got - self.expected) <= self.envelope)

    def agrees(self, other: Values) -> bool:
        """Whether the other values are the same apart from rounding, and not finite in the same places."""
        return self._agree(other, self.got, other.got)

    def has_same_errors(self, other: Values) -> bool:
        """
        Whether the other values are off by as much as these.

        A relation expects what follows from other results. If these have a second mistake, so has the expected value.
        """
        return self._agree(other, self.got - self.expected, other.got - other.expected)

    def _agree(self, other: Values, here: np.ndarray, there: np.ndarray) -> bool:
        if here.shape != there.shape:
            return False
        judged = np.isfinite(self.envelope) & np.isfinite(self.expected)
        slack = np.maximum(self.slack(), other.slack())
        return _worst(np.where(judged, here, 0.0), np.where(judged, there, 0.0), slack) <= 1


def _largest(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _worst(a: np.ndarray, b: np.ndarray, unit: np.ndarray) -> float:
    if not a.size:
        return 0.0
    apart = np.abs(a - b)
    ratio = np.where(apart == 0, 0.0, apart / unit)
    finite = np.isfinite(a), np.isfinite(b)
    # Where a mistake divides zero by zero or overflows, the order of steps decides between NaN and infinity.
    ratio = np.where(finite[0] & finite[1], ratio, np.where(finite[0] == finite[1], 0.0, np.inf))
    return float(np.nan_to_num(ratio, nan=np.inf, posinf=np.inf).max())


#: Two numbers that a check shows are the same if this many roundings explain their difference.
_ROUNDINGS = 64.0


@attrs.frozen(eq=False)
class ComparisonOutcome:
    """One comparison of a check: it holds, or how it is violated."""

    #: The output or gradient that it is about.
    output: str = ""
    #: How it is violated, without the numbers that roundings change; "" where it holds.
    words: str = ""
    #: The note of its finding, without numbers: it tells the calls of a check apart.
    note: str = ""
    #: The element that shows it, with its expected and received value, if there are no ``values``.
    index: tuple[int, ...] = ()
    expected: float | None = None
    got: float | None = None
    #: Whether each bit counts; an error may then be smaller than roundings.
    bitwise: bool = False
    #: Half a unit in the last place of 1 in the dtype of the values.
    unit: float = 0.0
    #: Everything that was compared, if these were numbers within an envelope.
    values: Values | None = None

    @property
    def clearly_wrong(self) -> bool:
        """Whether it is violated by more than roundings explain."""
        return bool(self.words) and (self.values is None or self.values.worst_error() >= CLEARLY_WRONG)

    def agrees(self, other: ComparisonOutcome) -> bool:
        """Whether the other comparison came out the same apart from rounding."""
        if not self.words or not other.words:
            broken = self if self.words else other
            return not broken.words or (broken.values is not None and broken.values.worst_error() <= 1)
        if (self.output, self.words) != (other.output, other.words):
            return False
        if self.values is not None and other.values is not None:
            return self.values.agrees(other.values)
        return self.index == other.index and self._shows_the_same_number(other)

    def _shows_the_same_number(self, other: ComparisonOutcome) -> bool:
        if self.expected is None or other.expected is None or self.got is None or other.got is None:
            pairs = (self.expected, other.expected), (self.got, other.got)
            return all(here == there or (here != here and there != there) for here, there in pairs)  # NaN is NaN
        if self.bitwise:
            off, also = np.sign(self.got - self.expected), np.sign(other.got - other.expected)
            return bool(off == also or (np.isnan(off) and np.isnan(also)))
        largest = max(abs(self.got), abs(self.expected))
        slack = _ROUNDINGS * self.unit * (largest if np.isfinite(largest) else 0.0)
        return np.allclose((self.expected, self.got), (other.expected, other.got), rtol=0.0, atol=slack, equal_nan=True)


@attrs.frozen(eq=False)
class Answer:
    """A subject's answer: the values of a call by name, the comparisons of a check, or words in their place."""

    values: Mapping[str, Values] = attrs.field(factory=dict)
    #: How the call failed, or the first violation of a check; "" if there is none.
    words: str = ""
    #: All comparisons of a check, in its order.
    comparisons: tuple[ComparisonOutcome, ...] = ()
    #: The inputs that no gradient reaches, if that is how the call failed.
    missing: tuple[str, ...] = ()

    @property
    def clearly_wrong(self) -> bool:
        """Whether no sound function answers so."""
        wrong = any(value.worst_error() >= CLEARLY_WRONG for value in self.values.values())
        return wrong or any(outcome.clearly_wrong for outcome in self.comparisons)

    @property
    def right(self) -> bool:
        """Whether something was returned or compared, and nothing of it is wrong."""
        judged = bool(self.values or self.comparisons) and not self.words
        return judged and not any(value.outside_envelope.any() for value in self.values.values())

    def agrees(self, other: Answer) -> bool:
        """Whether the other answer is the same apart from rounding."""
        if self.comparisons and other.comparisons:
            pairs = _paired(self.comparisons, other.comparisons)
            return bool(pairs) and all(outcome.agrees(there) for outcome, there in pairs)
        if self.words != other.words or set(self.values) != set(other.values):
            return False
        return all(value.agrees(other.values[name]) for name, value in self.values.items())

    def has_same_errors(self, other: Answer) -> bool:
        """Whether both answers are off, and by as much."""
        if not self.words or self.words != other.words or set(self.values) != set(other.values):
            return False
        return all(value.has_same_errors(other.values[name]) for name, value in self.values.items())


_Outcomes = Sequence[ComparisonOutcome]


def _paired(some: _Outcomes, others: _Outcomes) -> list[tuple[ComparisonOutcome, ComparisonOutcome]]:
    """
    The comparisons of two answers, one by one; none if they are not the same comparisons.

    A check may make a call that only one of two frameworks has, such as one with a layout. Such a call is left out,
    unless it alone shows a violation: the others then say nothing about that.
    """
    kept = some, others
    if len(some) != len(others):
        notes = {one.note for one in some} & {one.note for one in others}
        kept = [one for one in some if one.note in notes], [one for one in others if one.note in notes]
        for whole, left in zip((some, others), kept, strict=True):
            if any(one.words for one in whole) and not any(one.words for one in left):
                return []
    return [*zip(*kept, strict=True)] if len(kept[0]) == len(kept[1]) else []
