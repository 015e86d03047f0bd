"""
The parts of a composed operator, as functions on numbers with bounds. The tape supplies their Jacobians.

A part is one of `spec/parts.py`, which says in words what each kind returns for x of shape (..., n); adapters build the
callables that a target receives. Parts run in the data's format, one operation after the other, whatever the operator's
own arithmetic is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .bounded import Number
from .bounded_functions import relu, tanh

Leaves = Mapping[str, Number]


class NoExactValue(ValueError):
    """The part has no value to compute: it raises, or its result does not have x's shape."""


def part_function(part: Any, leaves: Leaves) -> Callable[..., Number]:
    """
    The function of a part, as an operator calls it.

    Its result is a tensor, and so is the cotangent that it receives. Raises NoExactValue for a kind that has no known
    function.
    """
    fuses = part.kind in _FUSING
    if part.kind not in _KINDS and not fuses:
        raise NoExactValue(f"a part of kind {part.kind!r} has no exact value")

    def call(handed: Any) -> Number:
        tape = (handed[0] if fuses else handed).tape
        before, tape.rounding = tape.rounding, tape.data
        try:
            result = (_FUSING if fuses else _KINDS)[part.kind](part, handed, leaves)
            return as_data_tensor(result)
        finally:
            tape.rounding = before

    return call


def as_data_tensor(result: Number) -> Number:
    """A result as a tensor in the data's format; its cotangent is cast to that format too."""
    out = result if result.stored else result.materialised()
    parents = ((out, lambda g: g.cast_to_data()),)
    back = Number(out.tape, out.value, out.magnitude, out.error, out.product_bound, parents)
    back.stored = True
    return back


def _apply(part: Any, x: Number, leaves: Leaves) -> Number:
    return _KINDS[part.kind](part, x, leaves)


def _linear(part: Any, x: Number, leaves: Leaves) -> Number:
    rows = x.reshaped((-1, x.shape[-1])) @ leaves[part.leaves[0]]
    return rows.reshaped(x.shape)


def _convolution(part: Any, x: Number, leaves: Leaves) -> Number:
    kernel, axis = leaves[part.leaves[0]], len(x.shape) - 2
    terms = [kernel.element(j) * x.shifted(offset, axis) for j, offset in enumerate(part.offsets)]
    return terms[0] + terms[1] + terms[2]


def _cascade(part: Any, x: Number, leaves: Leaves) -> Number:
    for k, inner in enumerate(part.inner):
        x = _apply(inner, x, leaves)
        if k + 1 < len(part.inner) and not x.stored:
            x = x.materialised()
    return x


def _zero(part: Any, x: Number, leaves: Leaves) -> Number:
    return x.tape.given(np.zeros(x.shape))


def _replayed(part: Any, x: Number, leaves: Leaves) -> Number:
    value, cotangent = (leaves[name] for name in part.leaves)
    parents = ((value, lambda g: g), (x, lambda g: cotangent))
    result = Number(x.tape, value.value, value.magnitude, value.error, value.product_bound, parents)
    result.stored = True
    return result


_KINDS: dict[str, Callable[[Any, Number, Leaves], Number]] = {
    "identity": lambda part, x, leaves: x,
    "view": lambda part, x, leaves: x,
    "zero": _zero,
    "leaf": lambda part, x, leaves: leaves[part.leaves[0]],
    "negated": lambda part, x, leaves: -x,
    "scaled": lambda part, x, leaves: x.times_power_of_two(part.number),
    "linear": _linear,
    "tanh_linear": lambda part, x, leaves: tanh(_linear(part, x, leaves).materialised()),
    "square": lambda part, x, leaves: x * x,
    "relu": lambda part, x, leaves: relu(x),
    "tanh": lambda part, x, leaves: tanh(x),
    "convolution": _convolution,
    "causal": _convolution,
    "cascade": _cascade,
    "dropout": lambda part, x, leaves: _apply(part.inner[0], x, leaves).materialised() * leaves[part.leaves[0]],
    "counted": lambda part, x, leaves: _apply(part.inner[0], x, leaves),
    "buffered": lambda part, x, leaves: _apply(part.inner[0], x, leaves),
    "transposed": lambda part, x, leaves: _apply(part.inner[0], x, leaves),
    "strided": lambda part, x, leaves: _apply(part.inner[0], x, leaves),
    "common": lambda part, x, leaves: _apply(part.inner[0], x, leaves),
    "replayed": _replayed,
}


def _fuse_sum(part: Any, ys: Sequence[Number], leaves: Leaves) -> Number:
    total = ys[0]
    for y in ys[1:]:
        total = total + y
    return total


def _fuse_product(part: Any, ys: Sequence[Number], leaves: Leaves) -> Number:
    total = ys[0]
    for y in ys[1:]:
        total = total * y
    return total


def _fuse_weighted(part: Any, ys: Sequence[Number], leaves: Leaves) -> Number:
    a = leaves[part.leaves[0]]
    return _fuse_sum(part, [a.element(k) * y for k, y in enumerate(ys)], leaves)


def _fuse_coupled(part: Any, ys: Sequence[Number], leaves: Leaves) -> Number:
    coupled = [tanh(before) * y for before, y in pairwise(ys)]
    return _fuse_sum(part, [*ys, *coupled], leaves)


_FUSING: dict[str, Callable[[Any, Sequence[Number], Leaves], Number]] = {
    "fuse_sum": _fuse_sum,
    "fuse_product": _fuse_product,
    "fuse_weighted": _fuse_weighted,
    "fuse_coupled": _fuse_coupled,
}
