"""
Random numbers for cases: the same on every machine and with every version of NumPy.

NumPy does not promise that its generators keep giving the same numbers. So everything here is made from SplitMix64's
bits (Steele, Lea and Flood 2014, https://doi.org/10.1145/2714064.2660195) by operations that IEEE 754 rounds correctly,
element by element. There is no exp, log or sum whose last bit depends on a library or on a processor's lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Shape = int | tuple[int, ...]
T = TypeVar("T")

#: The variance of a sum of eight uniform numbers is 8/12; this factor makes it 1.
_EIGHT = math.sqrt(1.5)


#: SplitMix64's step from one state to the next, and the factors that mix a state.
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = (1 << 64) - 1


class Stream:
    """
    A stream of numbers that depends only on its key, integers of any size.

    Its methods have the names and arguments of those of ``numpy.random.Generator``.
    """

    def __init__(self, *key: int) -> None:
        self._state = len(key)
        for part in key:
            while True:
                self._state = _mixed((self._state ^ (part & _WORD)) + _STEP)
                part >>= 64
                if part in (0, -1):
                    break

    def _raw(self, shape: Shape, each: int = 1) -> NDArray[np.uint64]:
        """Sixty-four random bits for each element, ``each`` times, along a new first axis if more than once."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        count = math.prod(shape) * each
        steps = np.arange(1, count + 1, dtype=np.uint64)
        steps *= np.uint64(_STEP)  # modulo 2^64, like everything here
        steps += np.uint64(self._state)
        self._state = (self._state + count * _STEP) & _WORD
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            steps ^= steps >> np.uint64(shift)
            steps *= np.uint64(factor)
        steps ^= steps >> np.uint64(31)
        return steps.reshape(shape if each == 1 else (each, *shape))

    def integers(self, low: int, high: int, size: Shape = ()) -> NDArray[np.int64]:
        """Integers from ``low`` up to but not including ``high``: int64 of shape ``size``."""
        # The remainder favours small numbers by at most span/2^64, which nobody will ever notice.
        return (self._raw(size) % np.uint64(high - low)).astype(np.int64) + low

    def random(self, size: Shape = ()) -> NDArray[np.float64]:
        """Multiples of 2^-53 in [0, 1): float64 of shape ``size``."""
        return (self._raw(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def uniform(self, low: float, high: float, size: Shape = ()) -> NDArray[np.float64]:
        """Numbers between ``low`` and ``high``: float64 of shape ``size``."""
        return low + (high - low) * self.random(size)

    def standard_normal(self, size: Shape = ()) -> NDArray[np.float64]:
        """
        Numbers of mean 0 and variance 1, nearly normal and below 4.9: float64 of shape ``size``, all 53 bits in use.

        Each is the sum of eight uniform 32-bit numbers, added as integers, and a ninth below their last bit.
        """
        words = self._raw(size, 5)
        half = np.uint64(32)
        low = np.uint64(2**32 - 1)
        total = np.zeros(words.shape[1:], np.uint64)
        for word in words[:4]:
            total += (word >> half) + (word & low)
        centred = total.astype(np.float64) - 2.0**34  # the mean of the eight
        return (centred + words[4].astype(np.float64) * 2.0**-64) * (2.0**-32 * _EIGHT)

    def choice(self, values: Sequence[float], size: Shape = ()) -> NDArray[np.float64]:
        """Some of the values, each equally likely: float64 of shape ``size``."""
        return np.asarray(values, np.float64)[self.integers(0, len(values), size)]

    def permutation(self, values: int | Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        """The values, or the integers below a number, in random order."""
        given = np.arange(values) if isinstance(values, int) else np.asarray(values)
        return given[np.argsort(self._raw(len(given)), kind="stable")]

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.number(0, len(choices) - 1)]

    def number(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included: what ``integers`` would give."""
        self._state = (self._state + _STEP) & _WORD
        return low + _mixed(self._state) % (high + 1 - low)


def _mixed(state: int) -> int:
    """The random number that belongs to a state."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        state &= _WORD
        state = (state ^ (state >> shift)) * factor
    state &= _WORD
    return state ^ (state >> 31)


def mean(values: NDArray[np.float64]) -> float:
    """The mean, from a correctly rounded sum."""
    return math.fsum(values) / len(values)


def deviation(values: NDArray[np.float64]) -> float:
    """The standard deviation, from correctly rounded sums."""
    centre = mean(values)
    return math.sqrt(math.fsum((values - centre) ** 2) / len(values))
