"""Numbers that carry their first derivatives along two directions and the mixed second one, in mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf


class Jet:
    """z + a s + b t + m s t, to first order in s and in t."""

    __slots__ = ("a", "b", "m", "z")

    def __init__(self, z: Any, a: Any = 0, b: Any = 0, m: Any = 0) -> None:
        self.z, self.a, self.b, self.m = z, a, b, m

    def __add__(self, other: Any) -> Jet:
        o = jet(other)
        return Jet(self.z + o.z, self.a + o.a, self.b + o.b, self.m + o.m)

    def __mul__(self, other: Any) -> Jet:
        o = jet(other)
        mixed = self.z * o.m + self.a * o.b + self.b * o.a + self.m * o.z
        return Jet(self.z * o.z, self.z * o.a + self.a * o.z, self.z * o.b + self.b * o.z, mixed)

    def __neg__(self) -> Jet:
        return Jet(-self.z, -self.a, -self.b, -self.m)

    def __sub__(self, other: Any) -> Jet:
        return self + -jet(other)

    def __rsub__(self, other: Any) -> Jet:
        return jet(other) - self

    def __truediv__(self, other: Any) -> Jet:
        return self * jet(other).through(lambda z: 1 / z, lambda z: -1 / z**2, lambda z: 2 / z**3)

    def __rtruediv__(self, other: Any) -> Jet:
        return jet(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def through(self, f: Callable, first: Callable, second: Callable) -> Jet:
        """A function of this number, given with its two derivatives."""
        slope, bend = first(self.z), second(self.z)
        return Jet(f(self.z), slope * self.a, slope * self.b, slope * self.m + bend * self.a * self.b)

    def sqrt(self) -> Jet:
        """The square root."""
        return self.through(mpmath.sqrt, lambda z: 1 / (2 * mpmath.sqrt(z)), lambda z: -1 / (4 * z * mpmath.sqrt(z)))

    def exp(self) -> Jet:
        """The exponential; 0 at -inf."""
        return self.through(mpmath.exp, mpmath.exp, mpmath.exp)

    def tanh(self) -> Jet:
        """The hyperbolic tangent, its slope by the hyperbolic secant so that nothing cancels."""
        slope = lambda z: mpmath.sech(z) ** 2  # noqa: E731
        return self.through(mpmath.tanh, slope, lambda z: -2 * mpmath.tanh(z) * slope(z))

    def logistic(self) -> Jet:
        """1 / (1 + exp(-z)), its complement by the same formula of -z."""
        s = lambda z: 1 / (1 + mpmath.exp(-z))  # noqa: E731
        return self.through(s, lambda z: s(z) * s(-z), lambda z: s(z) * s(-z) * (s(-z) - s(z)))


def jet(value: Any) -> Jet:
    """A number as a jet."""
    return value if isinstance(value, Jet) else Jet(value)


def jets(z: np.ndarray, a: np.ndarray | None = None, b: np.ndarray | None = None) -> np.ndarray:
    """Arrays of values and of two directions, as an array of jets."""
    result = np.empty(z.shape, dtype=object)
    a, b = (np.full(z.shape, mpf(0), dtype=object) if w is None else w for w in (a, b))
    for index in np.ndindex(z.shape):
        result[index] = Jet(z[index], a[index], b[index])
    return result


def part(values: np.ndarray, name: str) -> np.ndarray:
    """One coefficient of each jet: "z", "a", "b" or "m"."""
    result = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        result[index] = getattr(jet(values[index]), name)
    return result


def mapped(name: str, values: np.ndarray) -> np.ndarray:
    """A method of each jet."""
    result = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        result[index] = getattr(jet(values[index]), name)()
    return result
