"""The values in the pages' formulas: mpmath numbers, arrays of them, linear maps, and functions of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import mpmath
import numpy as np
from mpmath import mp, mpf

#: Digits that every evaluation carries, twice over: differences of differences are taken with steps of 10^-40.
DIGITS = 120


def array(values: Any) -> np.ndarray:
    """An array of mpmath numbers."""
    values = np.asarray(values)
    result = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        number = values[index]
        result[index] = mpf(number.item() if isinstance(number, np.generic) else number)
    return result


def apply(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of a number, of each number of an array."""
    each = np.frompyfunc(function, 1, 1)
    return lambda z: each(z) if isinstance(z, np.ndarray) else function(z)


@attrs.frozen(eq=False)
class Linear:
    """A linear map of arrays, with its transpose."""

    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]

    @property
    def transposed(self) -> Linear:
        """The transpose."""
        return Linear(self.backward, self.forward)

    def __call__(self, z: Any) -> Any:
        return self.forward(z)

    def __add__(self, other: Linear) -> Linear:
        return Linear(lambda z: self(z) + other(z), lambda z: self.backward(z) + other.backward(z))

    def scaled(self, factor: Any) -> Linear:
        """The map followed by a product with each element's factor."""
        return Linear(lambda z: factor * self(z), lambda z: self.backward(factor * z))

    def after(self, other: Linear) -> Linear:
        """This map applied after the other."""
        return Linear(lambda z: self(other(z)), lambda z: other.backward(self.backward(z)))


@attrs.frozen(eq=False)
class Matrix:
    """A matrix to the right of a group: x W."""

    entries: np.ndarray

    def __add__(self, other: Matrix) -> Matrix:
        return Matrix(self.entries + other.entries)


#: The map that changes nothing.
IDENTITY = Linear(lambda z: z, lambda z: z)


def product(a: Any, b: Any) -> Any:
    """The meaning of a b."""
    if isinstance(b, Matrix):
        return Matrix(a.entries @ b.entries) if isinstance(a, Matrix) else a @ b.entries
    if isinstance(a, Linear):
        return a.after(b) if isinstance(b, Linear) else a(value(b))
    a, b = value(a), b if isinstance(b, Linear) else value(b)
    return b.scaled(a) if isinstance(b, Linear) else a * b


def transposed(thing: Any) -> Any:
    """The transpose of a map, or of an array."""
    if isinstance(thing, Matrix):
        return Matrix(thing.entries.T)
    return thing.transposed if isinstance(thing, Linear) else value(thing).T


def value(thing: Any) -> Any:
    """The value of a name as a factor: a part stands for its result."""
    return thing.returned() if hasattr(thing, "returned") else thing


def total(z: Any) -> Any:
    """The sum over the group, kept with length 1."""
    return np.asarray(z, dtype=object).sum(axis=-1, keepdims=True)


def mean(z: Any) -> Any:
    """The mean over the group, kept with length 1."""
    return total(z) / np.shape(z)[-1]


def over_groups(z: Any) -> Any:
    """The sum over the groups."""
    return np.asarray(z, dtype=object).sum(axis=0)


def extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Max or min: of one argument over the group, of several element by element."""
    pair = np.frompyfunc(lambda a, b: choose(a, b), 2, 1)

    def taken(first: Any, *others: Any) -> Any:
        if not others:
            values = np.asarray(first, dtype=object)
            return pair.reduce(values, axis=-1, keepdims=True) if values.ndim else first
        for other in others:
            first = pair(first, other)
        return first

    return taken


FUNCTIONS: dict[str, Any] = {
    "mean": mean,
    "sum": total,
    "max": extreme(max),
    "min": extreme(min),
    "sqrt": apply(mpmath.sqrt),
    "log": apply(mpmath.log),
    "log2": apply(lambda z: mpmath.log(z, 2)),
    "log1p": apply(mpmath.log1p),
    "expm1": apply(mpmath.expm1),
    "tanh": apply(mpmath.tanh),
    "sigmoid": apply(lambda z: 1 / (1 + mpmath.exp(-z))),
    "relu": apply(lambda z: max(z, mpf(0))),
    "sum over groups": over_groups,
    "sum over the channel": total,
    "sum over channel j": total,
    "softmax": lambda z: apply(mpmath.exp)(z) / np.sum(apply(mpmath.exp)(z)),
    "inf": mpf("inf"),
    "None": None,
    "len": len,
    "concat": lambda a, b: np.concatenate([a, b]),
}


def precise() -> Any:
    """The precision in which everything here is evaluated."""
    return mp.workdps(DIGITS)
