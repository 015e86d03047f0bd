"""Parts that fuse a list of arrays into one, each with its derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, mul

import numpy as np

from .arithmetic import Array
from .parts import Formula, Leaves, LinearInX, NumpyPart


class Sum(LinearInX):
    """The sum of y_k."""

    def value(self, x: Sequence[Array], leaves: Leaves) -> Array:
        return reduce(add, x)

    def cotangents(self, x: Sequence[Array], g: Array, leaves: Leaves) -> tuple[list[Array], Leaves]:
        return [g for _ in x], ()


class Product(Formula):
    """The product of y_k."""

    def value(self, x: Sequence[Array], leaves: Leaves) -> Array:
        return reduce(mul, x)

    def cotangents(self, x: Sequence[Array], g: Array, leaves: Leaves) -> tuple[list[Array], Leaves]:
        return [_product(x, g, without={k}) for k in range(len(x))], ()

    def tangent(self, x: Sequence[Array], tx: Sequence[Array], leaves: Leaves, moved: Leaves) -> Array:
        return reduce(add, [_product(x, t, without={k}) for k, t in enumerate(tx)])

    def second(self, x: Sequence[Array], g: Array, a: Sequence[Array], leaves: Leaves) -> tuple[list[Array], Array]:
        places = range(len(x))
        x_bar = [
            reduce(add, [_product(x, g * a[k], without={i, k}) for k in places if k != i], np.zeros_like(x[i]))
            for i in places
        ]
        return x_bar, self.tangent(x, a, leaves, ())

    def second_tangent(self, x: Sequence[Array], tx: Sequence[Array], sx: Sequence[Array], leaves: Leaves) -> Array:
        places = range(len(x))
        pairs = [_product(x, tx[i] * sx[k], without={i, k}) for i in places for k in places if k != i]
        return reduce(add, pairs, np.zeros_like(x[0]))


class Weighted(LinearInX):
    """The sum of weights[k] * y_k; the weights are the part's leaf."""

    def value(self, x: Sequence[Array], leaves: Leaves) -> Array:
        (weights,) = leaves
        return reduce(add, [w * y for w, y in zip(weights, x)])

    def cotangents(self, x: Sequence[Array], g: Array, leaves: Leaves) -> tuple[list[Array], Leaves]:
        (weights,) = leaves
        over = tuple(range(g.ndim - 1))
        return [w * g for w in weights], [np.stack([(g * y).sum(axis=over) for y in x])]


class Coupled(Formula):
    """The sum of y_k and of tanh(y_(k-1)) * y_k: each branch reads the one before it."""

    def value(self, x: Sequence[Array], leaves: Leaves) -> Array:
        return reduce(add, [*x, *(np.tanh(before) * y for before, y in zip(x, x[1:]))])

    def cotangents(self, x: Sequence[Array], g: Array, leaves: Leaves) -> tuple[list[Array], Leaves]:
        t = [np.tanh(y) for y in x]
        found = []
        for k in range(len(x)):
            bar = g  # each term separately, as it is differentiated: forming 1 + tanh first would round once more
            if k > 0:
                bar = bar + g * t[k - 1]
            if k + 1 < len(x):
                bar = bar + (g * x[k + 1]) * (1.0 - t[k] * t[k])
            found.append(bar)
        return found, ()

    def tangent(self, x: Sequence[Array], tx: Sequence[Array], leaves: Leaves, moved: Leaves) -> Array:
        t = [np.tanh(y) for y in x]
        terms = list(tx)
        for k in range(1, len(x)):
            terms += [t[k - 1] * tx[k], (1.0 - t[k - 1] * t[k - 1]) * tx[k - 1] * x[k]]
        return reduce(add, terms)

    def second(self, x: Sequence[Array], g: Array, a: Sequence[Array], leaves: Leaves) -> tuple[list[Array], Array]:
        t = [np.tanh(y) for y in x]
        s = [1.0 - y * y for y in t]
        x_bar = []
        for i in range(len(x)):
            bar = np.zeros_like(x[i])
            if i > 0:  # the slope in y_(i-1) contains y_i
                bar = bar + a[i - 1] * s[i - 1]
            if i + 1 < len(x):  # the slope in y_(i+1) contains tanh(y_i), and the slope in y_i contains tanh'(y_i)
                bar = bar + a[i + 1] * s[i] - 2.0 * a[i] * t[i] * s[i] * x[i + 1]
            x_bar.append(g * bar)
        return x_bar, self.tangent(x, a, leaves, ())

    def second_tangent(self, x: Sequence[Array], tx: Sequence[Array], sx: Sequence[Array], leaves: Leaves) -> Array:
        terms = [np.zeros_like(x[0])]
        for k in range(1, len(x)):
            t, before, beside = np.tanh(x[k - 1]), tx[k - 1] * sx[k - 1], tx[k - 1] * sx[k] + sx[k - 1] * tx[k]
            slope = 1.0 - t * t
            terms += [slope * beside, -2.0 * t * slope * before * x[k]]
        return reduce(add, terms)


def _product(ys: Sequence[Array], start: Array, without: set[int]) -> Array:
    """The start times all y_k except those at ``without``; nothing is divided, so zeros are safe."""
    return reduce(mul, [y for k, y in enumerate(ys) if k not in without], start)


#: The classes of this file by kind.
FUSIONS: Mapping[str, type[NumpyPart]] = {
    "fuse_sum": Sum,
    "fuse_product": Product,
    "fuse_weighted": Weighted,
    "fuse_coupled": Coupled,
}
