"""Shared code of pre_norm and post_norm: their calls, and LayerNorm over the last axis with its derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Tuple  # Python 3.8 can subscript only these at run time

import numpy as np

from .composed import Composed
from .groups import Groups
from .rows import Pull

Array = np.ndarray

#: Tangents or cotangents of x, gamma and beta.
Directions = Tuple[Array, Optional[Array], Optional[Array]]
#: The derivative of LayerNorm's gradients along a direction of x, gamma and beta: the terms for its input, gamma and g.
Bending = Callable[[Pull, Array, Array, Array], Tuple[Array, Array, Array]]


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of the input, gamma and beta, in the working dtype: the first of x's shape, the others as rows."""

    x: Array
    gamma: Array
    beta: Array


@dataclass(frozen=True, eq=False)
class Call:
    """The arguments of one call."""

    x: Array
    sublayer: Any
    gamma: Array | None
    beta: Array | None
    eps: float


class Block(Composed, Groups):
    """A LayerNorm over the last axis, together with an addition."""

    # The computations of a block, in the working dtype. Results have x's shape, except those of gamma and beta.

    def value_of(self, call: Call) -> Array:
        """y."""
        raise NotImplementedError

    def gradients_of(self, call: Call, g: Array) -> Gradients:
        """The gradients for the cotangent g of y."""
        raise NotImplementedError

    def tangent_of(self, call: Call, tangents: Directions) -> Array:
        """The tangent of y."""
        raise NotImplementedError

    def second_order_of(
        self, call: Call, g: Array, cotangents: Directions, bending: Bending
    ) -> tuple[Gradients, Array]:
        """The vjp of the map to the gradients: the cotangents of x, gamma and beta, and that of g."""
        raise NotImplementedError

    def second_tangent_of(self, call: Call, tangents: Directions, again: Directions) -> Array:
        """The second derivative of y along two directions."""
        raise NotImplementedError

    # The canonical callables: x, sublayer, gamma and beta come first.

    def call(self, *arrays: Any, eps: float) -> Array:
        """y, of x's shape and dtype."""
        call, _ = self.begin_block(arrays, eps)
        return self.write(self.value_of(call), self.shape, self.data, "y")

    def vjp(self, *arrays: Any, eps: float) -> tuple[Array, Array | None, Array | None]:
        """(dx, dgamma, dbeta), each of its input's shape and dtype, None for a parameter that is None."""
        call, (g,) = self.begin_block(arrays, eps, "g")
        d = self.gradients_of(call, g)
        return self._written(call, d, "dx", "dgamma", "dbeta")

    def jvp(self, *arrays: Any, eps: float) -> Array:
        """The tangent of y, of x's shape and dtype."""
        call, (tx, tgamma, tbeta) = self.begin_block(arrays, eps, "tx", "tgamma", "tbeta")
        return self.write(self.tangent_of(call, (tx, tgamma, tbeta)), self.shape, self.data, "ty")

    def vjp_vjp(self, *arrays: Any, eps: float) -> tuple[Array, Array | None, Array | None, Array]:
        """(x_bar, gamma_bar, beta_bar, g_bar) of the map (x, gamma, beta, g) -> (dx, dgamma, dbeta) at (a, b, c)."""
        call, (g, a, b, c) = self.begin_block(arrays, eps, "g", "a", "b", "c")
        bar, g_bar = self.second_order_of(call, g, (a, b, c), self.second_order)
        written = self._written(call, bar, "x_bar", "gamma_bar", "beta_bar")
        return (*written, self.write(g_bar, g.shape, g.dtype, "g_bar"))

    def jvp_vjp(self, *arrays: Any, eps: float) -> tuple[Array, Array | None, Array | None]:
        """The tangents of (dx, dgamma, dbeta) along (sx, sgamma, sbeta)."""
        call, (g, sx, sgamma, sbeta) = self.begin_block(arrays, eps, "g", "sx", "sgamma", "sbeta")

        def moved(p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
            return (*self.forward_over_reverse(p, a, b, c), self.tangent(p, a, b, c))

        bar, _ = self.second_order_of(call, g, (sx, sgamma, sbeta), moved)
        return self._written(call, bar, "x_bar", "gamma_bar", "beta_bar")

    def vjp_jvp(self, *arrays: Any, eps: float) -> tuple[Array, Array | None, Array | None]:
        """The gradients of <ty, g>, ty the tangent of y along (tx, tgamma, tbeta)."""
        call, (tx, tgamma, tbeta, g) = self.begin_block(arrays, eps, "tx", "tgamma", "tbeta", "g")

        def pulled(p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
            return (*self.reverse_over_forward(p, a, b, c), self.tangent(p, a, b, c))

        bar, _ = self.second_order_of(call, g, (tx, tgamma, tbeta), pulled)
        return self._written(call, bar, "x_bar", "gamma_bar", "beta_bar")

    def jvp_jvp(self, *arrays: Any, eps: float) -> Array:
        """The tangent along (sx, sgamma, sbeta) of the tangent of y along (tx, tgamma, tbeta)."""
        call, moved = self.begin_block(arrays, eps, "tx", "tgamma", "tbeta", "sx", "sgamma", "sbeta")
        return self.write(self.second_tangent_of(call, moved[:3], moved[3:]), self.shape, self.data, "tty")

    def begin_block(self, arrays: tuple[Any, ...], eps: float, *more: str) -> tuple[Call, tuple[Any, ...]]:
        """Check the arguments, note the shape and dtypes of this call, and split off its further arguments."""
        names = (*self.record.arguments, *more)
        if len(arrays) != len(names):
            raise TypeError(f"pass {', '.join(names)}: {len(names)} arguments, not {len(arrays)}")
        given = dict(zip(names, arrays))
        x, settings = given.pop("x"), {"eps": eps, "axes": (-1,)}
        call = Call(x, given.pop("sublayer"), given["gamma"], given["beta"], eps)
        likewise = {name: given.pop(name) for name in ("g", "a", "tx", "sx") if name in given}
        self.check(x, given, likewise, settings)
        self.begin(x, settings)
        return call, arrays[len(self.record.arguments) :]

    def _written(
        self, call: Call, found: Gradients, of_x: str, of_gamma: str, of_beta: str
    ) -> tuple[Array, Array | None, Array | None]:
        return (
            self.write(found.x, self.shape, self.data, of_x),
            self.of_parameter(found.gamma, call.gamma, of_gamma),
            self.of_parameter(found.beta, call.beta, of_beta),
        )

    # The inner LayerNorm. Its input is an array of x's shape; ``role`` says which array.

    def normed(self, array: Array, call: Call, role: str = "x") -> Array:
        """gamma xhat + beta of an array of x's shape, in the working dtype."""
        rows = self.rows(array, role)
        s = self.statistics(rows, self.number(call.eps))
        y = self.output(rows, s, self.parameter(call.gamma, "gamma"), self.parameter(call.beta, "beta"))
        return y.reshape(self.shape)

    def norm_gradients(self, array: Array, call: Call, g: Array) -> Gradients:
        """The gradients of the inner LayerNorm for the cotangent g of its result."""
        p = self._inner(array, call, g)
        return Gradients(self.input_gradient(p).reshape(self.shape), self.gamma_gradient(p), self.beta_gradient(p))

    def norm_tangent(self, array: Array, call: Call, tangents: Directions) -> Array:
        """The tangent of the inner LayerNorm's result."""
        (t, tgamma, tbeta), p = tangents, self._inner(array, call, None)
        ty = self.tangent(p, self.rows(t, "tx"), self.filled(tgamma, "tgamma"), self.filled(tbeta, "tbeta"))
        return ty.reshape(self.shape)

    def norm_second_tangent(self, array: Array, call: Call, tangents: Directions, again: Directions) -> Array:
        """The second derivative of the inner LayerNorm's result along two directions."""
        (t, tgamma, _), (s, sgamma, _), p = tangents, again, self._inner(array, call, None)
        moved = self.rows(t, "tx"), self.filled(tgamma, "tgamma"), self.rows(s, "sx"), self.filled(sgamma, "sgamma")
        return np.broadcast_to(self.second_tangent(p, *moved), p.x.shape).reshape(self.shape)

    def norm_second_order(
        self, array: Array, call: Call, g: Array, cotangents: Directions, bending: Bending
    ) -> tuple[Array, Array, Array]:
        """The cotangents of the input, gamma (as a row) and g of `norm_gradients`."""
        (a, b, c), p = cotangents, self._inner(array, call, g)
        x_bar, gamma_bar, g_bar = bending(p, self.rows(a, "a"), self.filled(b, "b"), self.filled(c, "c"))
        return x_bar.reshape(self.shape), gamma_bar, np.broadcast_to(g_bar, x_bar.shape).reshape(self.shape)

    def _inner(self, array: Array, call: Call, g: Array | None) -> Pull:
        return self.prepared({"x": array, "gamma": call.gamma, "beta": call.beta, "g": g})
