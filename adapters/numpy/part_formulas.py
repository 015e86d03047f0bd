"""Parts that are plain functions of one array, each with its derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add

import numpy as np

from .arithmetic import Array
from .parts import Formula, Leaves, LinearInX, NumpyPart
from .plain_code import shift


class Identity(NumpyPart):
    """x itself, the same object."""

    def __call__(self, x: Array) -> Array:
        return x

    def pulled(self, x: Array, g: Array, *, note: bool) -> Array:
        return g

    def jvp(self, x: Array, tx: Array) -> Array:
        return tx

    def vjp_vjp(self, x: Array, g: Array, a: Array) -> tuple[Array, Array]:
        return np.zeros_like(x), a

    def jvp_jvp(self, x: Array, tx: Array, sx: Array) -> Array:
        return np.zeros(x.shape, x.dtype)


class View(Identity):
    """Another view of x's memory."""

    def __call__(self, x: Array) -> Array:
        return self.material.bridge.view(x)


class Zero(Identity):
    """Zeros, whatever x is."""

    def __call__(self, x: Array) -> Array:
        return np.zeros(x.shape, x.dtype)

    def pulled(self, x: Array, g: Array, *, note: bool) -> Array:
        return np.zeros(x.shape, x.dtype)

    def jvp(self, x: Array, tx: Array) -> Array:
        return np.zeros(x.shape, x.dtype)

    def vjp_vjp(self, x: Array, g: Array, a: Array) -> tuple[Array, Array]:
        return np.zeros(x.shape, x.dtype), np.zeros(g.shape, g.dtype)


class Constant(Zero):
    """The part's leaf, the same object, whatever x is."""

    def __call__(self, x: Array) -> Array:
        return self.material.leaves[0].value

    def pulled(self, x: Array, g: Array, *, note: bool) -> Array:
        if note:
            self.material.leaves[0].note(g.astype(np.result_type(g.dtype, np.float32)))
        return np.zeros(x.shape, x.dtype)

    def jvp(self, x: Array, tx: Array) -> Array:
        tangent = self.material.leaves[0].tangent
        return np.zeros(x.shape, x.dtype) if tangent is None else tangent


class Replayed(Constant):
    """The part's first leaf; the cotangent of x is the second leaf."""

    def pulled(self, x: Array, g: Array, *, note: bool) -> Array:
        super().pulled(x, g, note=note)
        return self.material.leaves[1].value


class Multiple(LinearInX):
    """x times a number: minus one if the part is "negated"."""

    def _factor(self) -> float:
        return -1.0 if self.material.part.kind == "negated" else self.material.part.number

    def value(self, x: Array, leaves: Leaves) -> Array:
        return self._factor() * x

    def cotangents(self, x: Array, g: Array, leaves: Leaves) -> tuple[Array, Leaves]:
        return self._factor() * g, ()


class Linear(LinearInX):
    """x @ w."""

    def value(self, x: Array, leaves: Leaves) -> Array:
        return x @ leaves[0]

    def cotangents(self, x: Array, g: Array, leaves: Leaves) -> tuple[Array, Leaves]:
        return g @ leaves[0].T, [_outer(x, g)]


class Convolution(LinearInX):
    """A depthwise convolution over the second last axis, with three taps, dilated."""

    def _folded(self, x: Array, k: Array, sign: int = 1) -> Array:
        offsets = self.material.part.offsets
        return reduce(add, [k[j] * shift(x, sign * offset, -2) for j, offset in enumerate(offsets)])

    def value(self, x: Array, leaves: Leaves) -> Array:
        return self._folded(x, leaves[0])

    def cotangents(self, x: Array, g: Array, leaves: Leaves) -> tuple[Array, Leaves]:
        over = tuple(range(x.ndim - 1))
        dk = np.stack([(g * shift(x, offset, -2)).sum(axis=over) for offset in self.material.part.offsets])
        return self._folded(g, leaves[0], -1), [dk]


class Elementwise(Formula):
    """A function of each element, given by its value and its first two derivatives."""

    def slopes(self, x: Array) -> tuple[Array, Array, Array]:
        """f(x), f'(x), f''(x)."""
        kind = self.material.part.kind
        if kind == "square":
            return x * x, 2.0 * x, np.full_like(x, 2.0)
        if kind == "relu":
            return np.maximum(x, 0.0), (x > 0.0).astype(x.dtype), np.zeros_like(x)
        y = np.tanh(x)
        slope = 1.0 - y * y
        return y, slope, -2.0 * y * slope

    def value(self, x: Array, leaves: Leaves) -> Array:
        return self.slopes(x)[0]

    def cotangents(self, x: Array, g: Array, leaves: Leaves) -> tuple[Array, Leaves]:
        return g * self.slopes(x)[1], ()

    def tangent(self, x: Array, tx: Array, leaves: Leaves, moved: Leaves) -> Array:
        return tx * self.slopes(x)[1]

    def second(self, x: Array, g: Array, a: Array, leaves: Leaves) -> tuple[Array, Array]:
        _, slope, bend = self.slopes(x)
        return a * g * bend, a * slope

    def second_tangent(self, x: Array, tx: Array, sx: Array, leaves: Leaves) -> Array:
        return tx * sx * self.slopes(x)[2]


class TanhLinear(Formula):
    """tanh(x @ w)."""

    def value(self, x: Array, leaves: Leaves) -> Array:
        return np.tanh(x @ leaves[0])

    def cotangents(self, x: Array, g: Array, leaves: Leaves) -> tuple[Array, Leaves]:
        (w,) = leaves
        pulled = g * (1.0 - np.square(np.tanh(x @ w)))
        return pulled @ w.T, [_outer(x, pulled)]

    def tangent(self, x: Array, tx: Array, leaves: Leaves, moved: Leaves) -> Array:
        slope = 1.0 - np.square(np.tanh(x @ leaves[0]))
        return slope * (tx @ leaves[0] + x @ moved[0])

    def second(self, x: Array, g: Array, a: Array, leaves: Leaves) -> tuple[Array, Array]:
        (w,) = leaves
        y = np.tanh(x @ w)
        slope, across = 1.0 - y * y, a @ w
        return (across * g * (-2.0 * y * slope)) @ w.T, across * slope

    def second_tangent(self, x: Array, tx: Array, sx: Array, leaves: Leaves) -> Array:
        (w,) = leaves
        y = np.tanh(x @ w)
        return (tx @ w) * (sx @ w) * (-2.0 * y * (1.0 - y * y))


def _outer(x: Array, g: Array) -> Array:
    """The gradient of w in x @ w: summed over all axes but the last."""
    return x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, g.shape[-1])


#: The classes of this file by kind.
FORMULAS: Mapping[str, type[NumpyPart]] = {
    "identity": Identity,
    "view": View,
    "zero": Zero,
    "leaf": Constant,
    "replayed": Replayed,
    "negated": Multiple,
    "scaled": Multiple,
    "linear": Linear,
    "convolution": Convolution,
    "causal": Convolution,
    "tanh_linear": TanhLinear,
    "square": Elementwise,
    "relu": Elementwise,
    "tanh": Elementwise,
}
