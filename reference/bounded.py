"""
Numbers with bounds on a sound algorithm's error, on a tape that can be differentiated repeatedly.

A `Number` is an array of exact values. Each value has
    magnitude      an upper bound on the sum of the terms' sizes once the expression is multiplied out. Before
                   anything cancels, no arrangement of the expression adds up more than this;
    error          a bound on |computed - exact| for every sound algorithm;
    product_bound  an upper bound on the sum, over the terms, of the product of max(1, |factor|) over the term's
                   factors. It bounds every partial product, in any order of the factors, and also what
                   multiplies an underflow in one of them.

The rounding error of an operation is u times the magnitude, not u times the value, because an algorithm may distribute
a product over a sum or add the terms in another order. A value is *materialised* where every algorithm must form it;
its magnitude is then |value| + error. The error of each operation is given beside it. Terms of second order in u are
left out where a factor of two on the first order covers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from .values import Exact, Field, Move

Array = NDArray[np.float64]


@attrs.frozen
class Rounding:
    """The arithmetic in which each step is rounded."""

    #: Unit roundoff, underflow error, and the largest finite value.
    u: float
    eta: float
    largest: float
    #: The most that each operand of a sum, and the sum, may lose where subnormals are flushed; zero where kept.
    flush: float = 0.0


@attrs.define(eq=False)
class Tape:
    """What the numbers of one computation share."""

    #: The kind of exact values: `Float64Numbers` or `ScaledNumbers`.
    field: Field
    #: The arithmetic of the operator's own steps, and that of tensors: everything that a part receives, computes
    #: or returns.
    operator: Rounding
    data: Rounding
    #: The arithmetic of the steps being taken now.
    rounding: Rounding = attrs.field(init=False)
    #: Whether a new number keeps what it was computed from. Off where nothing is differentiated again: the numbers of
    #: a large case take hundreds of MiB.
    recording: bool = True
    #: How many numbers were made. The tape does not hold them, so that one is freed with the last result that needs it,
    #: unless its derivative needs the number itself, as that of tanh does.
    made: int = 0

    def __attrs_post_init__(self) -> None:
        self.rounding = self.operator

    def given(self, array: Any) -> Number:
        """An input tensor of the operator: exact."""
        value = self.field.of(array)
        size = np.abs(np.asarray(array).astype(np.float64))
        number = Number(self, value, size, np.zeros_like(size), np.maximum(size, 1.0))
        number.rounding, number.stored = self.data, True
        return number


#: Turns the gradient of a number into the gradient of one of its parents.
Pull = Callable[["Number"], "Number"]


class Number:
    """Exact values with their bounds, and the numbers that they were computed from."""

    __slots__ = (
        "error",
        "extra_terms",
        "index",
        "magnitude",
        "parents",
        "product_bound",
        "rounding",
        "stored",
        "tape",
        "value",
    )

    def __init__(
        self, tape: Tape, value: Exact, magnitude: Array, error: Array, product_bound: Array,
        parents: Sequence[tuple[Number, Pull]] = (),
    ) -> None:  # fmt: skip
        self.tape, self.value, self.magnitude, self.error, self.product_bound = (
            tape,
            value,
            magnitude,
            error,
            product_bound,
        )
        #: The numbers that it was computed from, each with what turns its gradient into theirs.
        self.parents = parents if tape.recording else ()
        #: The arithmetic in which it was made, and in which gradients pass through it.
        self.rounding = tape.rounding
        #: The number of terms that a sound algorithm may add up in its gradient beyond those of this tape.
        self.extra_terms = 0
        #: Whether it is a tensor in the data's format already, so that storing it changes nothing.
        self.stored = False
        #: Its place: a number is made after its parents.
        self.index = tape.made
        tape.made += 1

    @property
    def shape(self) -> tuple[int, ...]:
        return self.magnitude.shape

    @property
    def as_float64(self) -> Array:
        """The exact values, rounded to float64."""
        return self.tape.field.as_float64(self.value)

    def __neg__(self) -> Number:
        """Exact."""
        return Number(self.tape, -self.value, self.magnitude, self.error, self.product_bound, ((self, lambda g: -g),))

    def __add__(self, other: Number) -> Number:
        """One rounding, relative to the magnitude of the terms."""
        return self._sum(other, self.value + other.value, lambda g: reduced(g, other.shape))

    def __sub__(self, other: Number) -> Number:
        """As addition."""
        return self._sum(other, self.value - other.value, lambda g: -reduced(g, other.shape))

    def _sum(self, other: Number, value: Exact, pull: Pull) -> Number:
        magnitude = self.magnitude + other.magnitude
        error = self.error + other.error + self.tape.rounding.u * magnitude + 3 * self.tape.rounding.flush
        parents = ((self, lambda g: reduced(g, self.shape)), (other, pull))
        return Number(self.tape, value, magnitude, error, self.product_bound + other.product_bound, parents)

    def __mul__(self, other: Number) -> Number:
        """Two roundings: one of the product, and one more addition if the product is distributed over a sum."""
        rounding = self.tape.rounding
        magnitude, product_bound = self.magnitude * other.magnitude, self.product_bound * other.product_bound
        error = (
            self.magnitude * other.error
            + other.magnitude * self.error
            + 2 * rounding.u * magnitude
            + rounding.eta * product_bound
        )
        parents = (
            (self, lambda g: reduced(g * other, self.shape)),
            (other, lambda g: reduced(g * self, other.shape)),
        )
        return Number(self.tape, self.value * other.value, magnitude, error, product_bound, parents)

    def divided_by(self, n: float) -> Number:
        """Division by a constant: one rounding, and one more of 1/n if that is formed first."""
        rounding = self.tape.rounding
        magnitude = self.magnitude / n
        error = self.error / n + 2 * rounding.u * magnitude + 2 * rounding.eta * self.product_bound
        value = self.tape.field.divided_by(self.value, n)
        return Number(self.tape, value, magnitude, error, self.product_bound, ((self, lambda g: g.divided_by(n)),))

    def times_power_of_two(self, factor: float) -> Number:
        """The product with a power of two: exact, apart from underflow."""
        magnitude, product_bound = self.magnitude * abs(factor), self.product_bound * max(1.0, abs(factor))
        error = self.error * abs(factor) + self.tape.rounding.eta * (abs(factor) < 1)
        value = self.value * self.tape.field.of(factor)
        return Number(
            self.tape, value, magnitude, error, product_bound, ((self, lambda g: g.times_power_of_two(factor)),)
        )

    def in_sum(self, others: int) -> Number:
        """The same value after a sum with `others` other terms that came first: `others` roundings of it."""
        error = self.error + others * (self.tape.rounding.u * self.magnitude + 2 * self.tape.rounding.flush)
        parents = ((self, lambda g: g.out_of_sum(others)),)
        return Number(self.tape, self.value, self.magnitude, error, self.product_bound, parents)

    def out_of_sum(self, others: int) -> Number:
        """The transposed map of `in_sum`. It rounds nothing itself; its own derivative does."""
        parents = ((self, lambda g: g.in_sum(others)),)
        return Number(self.tape, self.value, self.magnitude, self.error, self.product_bound, parents)

    def total(self, *axes: int) -> Number:
        """The sum over axes, kept with length 1: s = n - 1 roundings of the whole, in any order (A1)."""
        count = np.prod([self.shape[axis] for axis in axes], dtype=int)
        magnitude = self.magnitude.sum(axis=axes, keepdims=True)
        rounding = self.tape.rounding
        error = self.error.sum(axis=axes, keepdims=True) + max(count - 1, 0) * (
            rounding.u * magnitude + 3 * rounding.flush
        )
        product_bound = self.product_bound.sum(axis=axes, keepdims=True)
        value, shape = self.tape.field.total(self.value, axes), self.shape
        return Number(self.tape, value, magnitude, error, product_bound, ((self, lambda g: g.expanded(shape)),))

    def mean(self) -> Number:
        """The mean over the last axis."""
        return self.total(len(self.shape) - 1).divided_by(self.shape[-1])

    def __matmul__(self, other: Number) -> Number:
        """The product of two matrices: a rounding for each product and each sum, and one for storing (A22)."""
        rounding = self.tape.rounding
        magnitude, product_bound = self.magnitude @ other.magnitude, self.product_bound @ other.product_bound
        error = self.magnitude @ other.error + self.error @ other.magnitude
        error = (
            error + (self.shape[1] + 1) * (rounding.u * magnitude + 3 * rounding.flush) + rounding.eta * product_bound
        )
        value = self.tape.field.matmul(self.value, other.value)
        parents = ((self, lambda g: g @ other.transposed()), (other, lambda g: self.transposed() @ g))
        return Number(self.tape, value, magnitude, error, product_bound, parents)

    def rearranged(self, move: Move, back: Callable[[Number], Number]) -> Number:
        """Elements moved to other places, with zeros in empty ones; `back` is the transposed map."""
        value = self.tape.field.move(self.value, move)
        magnitude, error = move(self.magnitude, 0.0), move(self.error, 0.0)
        return Number(self.tape, value, magnitude, error, move(self.product_bound, 1.0), ((self, back),))

    def transposed(self) -> Number:
        """A matrix with its axes exchanged."""
        return self.rearranged(lambda z, _: z.T, lambda g: g.transposed())

    def reshaped(self, shape: tuple[int, ...]) -> Number:
        """The same elements in another shape."""
        before = self.shape
        return self.rearranged(lambda z, _: z.reshape(shape), lambda g: g.reshaped(before))

    def expanded(self, shape: tuple[int, ...]) -> Number:
        """The values repeated along axes of length 1, and along new axes in front."""
        before = self.shape
        if before == shape:
            return self
        return self.rearranged(lambda z, _: np.broadcast_to(z, shape), lambda g: reduced(g, before))

    def shifted(self, offset: int, axis: int) -> Number:
        """result[t] = self[t + offset] along an axis, zero beyond its ends."""
        return self.rearranged(lambda z, fill: shift(z, fill, offset, axis), lambda g: g.shifted(-offset, axis))

    def element(self, k: int) -> Number:
        """Element k along the first axis, which is dropped."""
        count = self.shape[0]
        return self.rearranged(lambda z, _: z[k], lambda g: g.as_element(k, count))

    def as_element(self, k: int, count: int) -> Number:
        """The values as element k along a new first axis of length `count`; the other elements are zero."""
        return self.rearranged(lambda z, fill: place(z, fill, k, count), lambda g: g.element(k))

    def materialised(self) -> Number:
        """The same value, now one that every algorithm forms: its magnitude shrinks to |value| + error."""
        return self._stored(0.0, 0.0, self.tape.rounding.largest, lambda g: g)

    def cast_to_data(self) -> Number:
        """The same value as a tensor in the data's format; its gradient is cast too."""
        if self.stored:
            return self
        data, narrower = self.tape.data, self.rounding.u < self.tape.data.u
        u, eta = (data.u, data.eta) if narrower else (0.0, 0.0)
        result = self._stored(u, eta, data.largest, lambda g: g.cast_to_data())
        result.stored = True
        return result

    def _stored(self, u: float, eta: float, largest: float, pull: Pull) -> Number:
        size = np.abs(self.as_float64)
        error = self.error + u * (size + self.error) + eta
        # An algorithm that forms the product of large factors first may overflow before the end.
        error = np.where((self.product_bound < self.rounding.largest / 4) & (size + error < largest), error, np.inf)
        magnitude = size + error
        return Number(self.tape, self.value, magnitude, error, np.maximum(magnitude, 1.0), ((self, pull),))


def reduced(number: Number, shape: tuple[int, ...]) -> Number:
    """Sum over the axes along which a number of this shape was broadcast."""
    if number.shape == shape:
        return number
    new = len(number.shape) - len(shape)
    axes = [*range(new), *(new + k for k, n in enumerate(shape) if n == 1 and number.shape[new + k] != 1)]
    result = number.total(*axes) if axes else number
    return result if result.shape == shape else result.reshaped(shape)


def shift(z: np.ndarray, fill: Any, offset: int, axis: int) -> np.ndarray:
    """result[t] = z[t + offset] along an axis, `fill` beyond its ends."""
    result, n = np.full_like(z, fill), z.shape[axis]
    taken, put = [slice(None)] * z.ndim, [slice(None)] * z.ndim
    taken[axis] = slice(min(max(offset, 0), n), max(n + min(offset, 0), 0))
    put[axis] = slice(min(max(-offset, 0), n), max(n + min(-offset, 0), 0))
    result[tuple(put)] = z[tuple(taken)]
    return result


def place(z: np.ndarray, fill: Any, k: int, count: int) -> np.ndarray:
    """z as element k along a new first axis, `fill` elsewhere."""
    result = np.full((count, *np.shape(z)), fill, dtype=np.asarray(z).dtype)
    result[k] = z
    return result
