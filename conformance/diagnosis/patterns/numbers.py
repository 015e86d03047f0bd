"""Numbers in descriptions: the simplest one that every observation allows, and how to write it."""

from __future__ import annotations

import math

import attrs
import numpy as np


@attrs.frozen
class Interval:
    """All that a number may be."""

    low: float = -math.inf
    high: float = math.inf

    @property
    def empty(self) -> bool:
        """Whether no number is left."""
        return not self.low <= self.high

    @property
    def middle(self) -> float:
        """The number halfway between the bounds, which are finite."""
        return self.low + (self.high - self.low) / 2  # the sum of two large bounds is infinite

    def within(self, lows: np.ndarray, highs: np.ndarray) -> Interval:
        """The part that lies between all of these bounds too; empty if one of them is NaN."""
        low = float(lows.max()) if lows.size else -math.inf
        high = float(highs.min()) if highs.size else math.inf
        if math.isnan(low) or math.isnan(high):
            return Interval(1.0, 0.0)
        return Interval(max(self.low, low), min(self.high, high))

    def known(self, beside: float) -> bool:
        """Whether the interval is narrow: at most a tenth of its distance from another number."""
        if self.empty or not math.isfinite(self.high - self.low):
            return False
        return self.high - self.low <= abs(self.middle - beside) / 10


#: Denominators of fractions that a reader recognises.
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 16)
#: Whole numbers whose roots and reciprocal roots a reader recognises.
_ROOTS = (2, 3, 5, 6, 7, 8, 10)
#: The exponent of the largest power of two of float64.
_MOST_EXPONENT = 1023
#: Most digits of a number: more would be those of float64 itself.
_DIGITS = 17


def simplest(interval: Interval) -> float:
    """The plainest number in the interval: a small fraction, a power of ten or two, else one of few digits."""
    low, high = interval.low, interval.high
    if low <= 0 <= high:
        return 0.0
    if not (math.isfinite(low) and math.isfinite(high)):
        return low if math.isfinite(low) else high
    for denominator in _DENOMINATORS:
        least = math.ceil(low * denominator) if abs(low) < 1e6 else None
        if least is not None and least <= high * denominator and abs(least) <= 64:
            return least / denominator
    middle = interval.middle
    power = math.copysign(2.0 ** min(round(math.log2(abs(middle))), _MOST_EXPONENT), middle)
    roots = [sign * number**power for number in _ROOTS for power in (0.5, -0.5) for sign in (1, -1)]
    for digits in range(1, _DIGITS):
        if digits == 4 and (root := next((one for one in roots if low <= one <= high), None)) is not None:
            return root
        if digits == 2 and low <= power <= high:
            return power
        for value in (
            float(f"{middle:.{digits - 1}e}"),
            float(f"{low:.{digits - 1}e}"),
            float(f"{high:.{digits - 1}e}"),
        ):
            if low <= value <= high:
                return value
    return middle


def is_plain(value: float) -> bool:
    """Whether it is a power of two, or has at most two digits."""
    return abs(math.frexp(value)[0]) == 0.5 or float(f"{value:.1e}") == value


def written(value: float) -> str:
    """A number as a reader would write it: 2, 1/3, 1.01, 1e-06."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    for denominator in (2, 3, 4, 5, 6, 8):
        if (
            abs(value) < 64
            and round(value * denominator)
            and abs(value * denominator - round(value * denominator)) < 1e-12
        ):
            return f"{round(value * denominator)}/{denominator}"
    for number in _ROOTS:
        for words, root in ((f"sqrt({number})", number**0.5), (f"1/sqrt({number})", number**-0.5)):
            if abs(value) == root:
                return f"{'-' if value < 0 else ''}{words}"
    fraction, exponent = math.frexp(abs(value))
    if fraction == 0.5 and not -4 < exponent < 20:
        return f"{'-' if value < 0 else ''}2^{exponent - 1}"
    return f"{value:.10g}"


def written_share(value: float) -> str:
    """A part of something, in percent of one digit: 20 %, 0.0005 %."""
    return f"{float(f'{100 * value:.1g}'):g} %"
