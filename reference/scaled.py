"""Double-double numbers with an exponent of their own, so that nothing overflows or underflows.

A `Scaled` is (hi + lo) * 2**exponent, element by element, with 1/2 <= |hi| < 1. It holds any finite
float64, and any product, quotient or sum of them. Formulas are therefore written as on paper, and the range
of float64 matters only when a result is converted back. Scaling by powers of two is exact.

Non-finite values behave as in IEEE arithmetic on hi alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import double_double as dd
from .double_double import DD

#: Exponents that stand for zero and for infinity or NaN. No formula here comes near them (float64 spans
#: -1074..1024 and nothing takes a tenth power), and they are safe to add and subtract in int32.
ZERO_EXPONENT, INFINITE_EXPONENT = -(2**28), 2**28

#: The exponent below which a mantissa in [1/2, 1) denotes a subnormal float64.
SUBNORMAL_EXPONENT = -1021

#: The exponent of the smallest subnormal, 2**-1074.
SMALLEST_EXPONENT = -1074


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """An array of double-doubles, each with its own power of two; made by `Scaled.of`."""

    #: Mantissas: |hi| in [1/2, 1), or zero, or not finite; lo is at most half an ulp of hi.
    mantissa: DD
    #: int32 array of the same shape.
    exponent: np.ndarray

    @classmethod
    def of(cls, value) -> Scaled:
        """Take a float64 array (or a float) exactly as it is."""
        hi = np.asarray(value, dtype=np.float64)
        return _normalised(DD(hi, np.zeros_like(hi)), np.zeros((), np.int32), lambda: hi)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.mantissa.hi.shape

    def __neg__(self) -> Scaled:
        return Scaled(DD(-self.mantissa.hi, -self.mantissa.lo), self.exponent)

    def __add__(self, other: Scaled) -> Scaled:
        top = np.maximum(self.exponent, other.exponent)
        x, y = self._aligned(top), other._aligned(top)
        return _normalised(dd.add(x, y), top, lambda: x.hi + y.hi)

    def __sub__(self, other: Scaled) -> Scaled:
        return self + -other

    def __mul__(self, other: Scaled) -> Scaled:
        x, y = self.mantissa, other.mantissa
        return _normalised(dd.mul(x, y), self.exponent + other.exponent, lambda: x.hi * y.hi)

    def __truediv__(self, other: Scaled) -> Scaled:
        x, y = self.mantissa, other.mantissa
        return _normalised(dd.div(x, y), self.exponent - other.exponent, lambda: x.hi / y.hi)

    def sqrt(self) -> Scaled:
        """Return the square root of each element; NaN below zero."""
        odd = self.exponent & 1
        root = dd.sqrt(DD(*(np.ldexp(word, odd) for word in self.mantissa)))
        return _normalised(root, (self.exponent - odd) >> 1, lambda: np.sqrt(self.mantissa.hi))

    def sum(self, axis: int) -> Scaled:
        """Sum along one axis, kept with length 1, on the exponent of the largest addend.

        An addend more than 2**-1074 below the largest is lost; that is 968 bits below the last bit kept.
        """
        top = self.exponent.max(axis=axis, keepdims=True, initial=ZERO_EXPONENT)
        addends = self._aligned(top)
        total = DD(*(np.expand_dims(word, axis) for word in dd.tree_sum(addends, axis)))
        return _normalised(total, top, lambda: addends.hi.sum(axis=axis, keepdims=True))

    def mean(self, axis: int) -> Scaled:
        """Average along one axis, kept with length 1; NaN where it is empty."""
        return self.sum(axis) / Scaled.of(float(self.shape[axis]))

    def reshape(self, *shape: int) -> Scaled:
        """Return the same elements in another shape."""
        return self._moved(lambda array: array.reshape(shape))

    def transpose(self, *axes: int) -> Scaled:
        """Return the same elements with the axes in this order."""
        return self._moved(lambda array: array.transpose(axes))

    def repeat(self, times: int, axis: int) -> Scaled:
        """Return each element repeated `times` times along an axis."""
        return self._moved(lambda array: array.repeat(times, axis))

    def to_dd(self) -> DD:
        """Return (hi, lo): hi is the value rounded once to float64, lo the remainder.

        Beyond the range of float64 hi is infinite and lo 0. Where hi is subnormal, lo is 0.
        """
        hi, lo = (np.asarray(np.ldexp(word, self.exponent)) for word in self.mantissa)
        small = (self.exponent < SUBNORMAL_EXPONENT) & (self.mantissa.hi != 0)
        if small.any():
            hi[small] = _round_to_subnormal(self, small)
            lo[small] = 0.0
        return DD(hi, np.where(np.isfinite(hi), lo, 0.0))

    def _aligned(self, exponent: np.ndarray) -> DD:
        """Return the double-doubles that, times 2**exponent, are these numbers."""
        shift = self.exponent - exponent
        return DD(*(np.ldexp(word, shift) for word in self.mantissa))

    def _moved(self, move: Callable[[np.ndarray], np.ndarray]) -> Scaled:
        hi, lo = self.mantissa
        return Scaled(DD(move(hi), move(lo)), move(self.exponent))


def _normalised(value: DD, exponent: np.ndarray, plain: Callable[[], np.ndarray]) -> Scaled:
    """Return value * 2**exponent; `plain` gives the IEEE result, for elements that are not finite."""
    hi, lo = value
    finite = np.isfinite(hi)
    beyond = not finite.all()
    if beyond:
        hi, lo = np.where(finite, hi, plain()), np.where(finite, lo, 0.0)
    hi, shift = np.frexp(hi)
    exponent = np.where(hi == 0, np.int32(ZERO_EXPONENT), exponent + shift)
    if beyond:
        exponent = np.where(np.isfinite(hi), exponent, np.int32(INFINITE_EXPONENT))
    return Scaled(DD(hi, np.ldexp(lo, -shift)), exponent)


def _round_to_subnormal(value: Scaled, where: np.ndarray) -> np.ndarray:
    """Round elements below float64's normal range once, to the nearest multiple of 2**-1074.

    hi is rounded already. Rounding it again would go wrong where it lies halfway between two multiples, so
    there lo decides. Below 2**52 hi and its fraction are exact in units of 2**-1074.
    """
    units = value.exponent[where] - SMALLEST_EXPONENT
    hi, lo = (np.ldexp(word[where], units) for word in value.mantissa)
    nearest = np.rint(hi)
    fraction = hi - nearest
    nearest += (fraction == 0.5) & (lo > 0)
    nearest -= (fraction == -0.5) & (lo < 0)
    return np.ldexp(nearest, SMALLEST_EXPONENT)
