"""The two kinds of exact values: float64 where the data is narrower, else double-doubles with exponents.

A `Field` is the set of functions that a computation needs besides + - * and negation, which both kinds of value
have. `as_float64` gives each value in float64; error bounds are evaluated on those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import elementary
from .double_double import DD
from .scaled import ZERO_EXPONENT, Scaled

#: float64 array, or Scaled.
Exact = Any
#: A rearrangement of an array; it fills empty places with the second argument.
Move = Callable[[np.ndarray, Any], np.ndarray]


class Float64Numbers:
    """Values in float64: exact enough where all data is narrower (spec/accuracy.md, A18)."""

    @staticmethod
    def of(array: Any) -> Exact:
        """Take an array as it is."""
        return np.asarray(array).astype(np.float64)

    @staticmethod
    def as_float64(value: Exact) -> np.ndarray:
        """The values themselves."""
        return value

    @staticmethod
    def pair(value: Exact) -> DD:
        """The values, and nothing left over."""
        return DD(value, np.zeros_like(value))

    @staticmethod
    def total(value: Exact, axes: tuple[int, ...]) -> Exact:
        """The sum over axes, kept with length 1."""
        return value.sum(axis=axes, keepdims=True)

    @staticmethod
    def divided_by(value: Exact, n: float) -> Exact:
        """value / n."""
        return value / n

    @staticmethod
    def matmul(a: Exact, b: Exact) -> Exact:
        """The product of two matrices."""
        return a @ b

    @staticmethod
    def move(value: Exact, move: Move) -> Exact:
        """The values, rearranged."""
        return move(value, 0.0)

    @staticmethod
    def stack(values: Sequence[Exact]) -> Exact:
        """Values of one shape, one after the other along a new first axis."""
        return np.stack(values)

    @staticmethod
    def tanh(value: Exact) -> Exact:
        """tanh of each."""
        return np.tanh(value)

    @staticmethod
    def logistic(value: Exact) -> tuple[Exact, Exact]:
        """t = 1 / (1 + exp(-z)) and 1 - t."""
        small = np.exp(-np.abs(value))
        large = 1 / (1 + small)
        small = small * large
        positive = value >= 0
        return np.where(positive, large, small), np.where(positive, small, large)

    @staticmethod
    def softmax(logits: np.ndarray) -> Exact:
        """exp(l_k) / sum exp(l_j)."""
        e = np.exp(logits - logits.max())
        return e / e.sum()


class ScaledNumbers:
    """Values in double-double, each with an exponent of its own."""

    @staticmethod
    def of(array: Any) -> Exact:
        """Take an array exactly as it is."""
        return Scaled.of(np.asarray(array).astype(np.float64))

    @staticmethod
    def as_float64(value: Exact) -> np.ndarray:
        """The leading word; infinite beyond the range of float64."""
        return np.ldexp(value.mantissa.hi, value.exponent)

    @staticmethod
    def pair(value: Exact) -> DD:
        """The value rounded once, and the remainder."""
        return value.to_dd()

    @staticmethod
    def total(value: Exact, axes: tuple[int, ...]) -> Exact:
        """The sum over axes, kept with length 1."""
        for axis in axes:
            value = value.sum(axis)
        return value

    @staticmethod
    def divided_by(value: Exact, n: float) -> Exact:
        """value / n."""
        return value / Scaled.of(n)

    @staticmethod
    def matmul(a: Exact, b: Exact) -> Exact:
        """The product of two matrices."""
        (rows, inner), columns = a.shape, b.shape[1]
        products = a.reshape(rows, inner, 1) * b.reshape(1, inner, columns)
        return products.sum(1).reshape(rows, columns)

    @staticmethod
    def move(value: Exact, move: Move) -> Exact:
        """The values, rearranged."""
        hi, lo = value.mantissa
        return Scaled(DD(move(hi, 0.0), move(lo, 0.0)), move(value.exponent, ZERO_EXPONENT))

    @staticmethod
    def stack(values: Sequence[Exact]) -> Exact:
        """Values of one shape, one after the other along a new first axis."""
        words = (np.stack([value.mantissa[word] for value in values]) for word in (0, 1))
        return Scaled(DD(*words), np.stack([value.exponent for value in values]))

    @staticmethod
    def tanh(value: Exact) -> Exact:
        """tanh of each."""
        return elementary.tanh(value)

    @staticmethod
    def logistic(value: Exact) -> tuple[Exact, Exact]:
        """t = 1 / (1 + exp(-z)) and 1 - t."""
        return elementary.logistic(value)

    @staticmethod
    def softmax(logits: np.ndarray) -> Exact:
        """exp(l_k) / sum exp(l_j)."""
        return elementary.softmax(logits)


Field = type[Float64Numbers] | type[ScaledNumbers]
