"""layer_norm on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arguments import check_axes, check_eps, check_shapes
from .operator import Operator
from .rows import Pull, Statistics

Array = np.ndarray


class Groups(Operator):
    """One group a row, parameters along the row."""

    parameters_along_rows = True
    axes: tuple[int, ...]

    def check(
        self,
        x: Array,
        parameters: dict[str, Array | None],
        likewise: dict[str, Array | None],
        eps: float,
        axes: tuple[int, ...],
    ) -> None:
        """Refuse bad arguments: `parameters` are shaped as the axes, `likewise` as x."""
        check_eps(eps)
        check_axes(x.shape, axes)
        check_shapes(parameters, x.shape[-len(axes) :])
        check_shapes(likewise, x.shape)

    def begin(self, x: Array, axes: tuple[int, ...]) -> None:
        """Note the shape, the axes and the working dtype of the call at hand."""
        self.begin_with(x)
        self.axes = tuple(axes)

    def rows(self, array: Array, role: str) -> Array:
        """An array of x's shape as (groups, features)."""
        count = len(self.axes)
        return self.read(array, role).reshape(math.prod(self.shape[:-count]), math.prod(self.shape[-count:]))

    def parameter(self, array: Array | None, role: str) -> Array | None:
        """A parameter as one row."""
        return None if array is None else self.read(array, role).reshape(1, -1)

    def filled(self, array: Array | None, role: str) -> Array:
        """A parameter's tangent or cotangent as one row, zero where it is None."""
        return np.zeros((1, 1), self.work) if array is None else self.read(array, role).reshape(1, -1)

    def prepared(self, x: Array, gamma: Array | None, beta: Array | None, g: Array | None, eps: float) -> Pull:
        """Everything derivatives need, from the inputs."""
        rows = self.rows(x, "x")
        cotangent = np.zeros_like(rows) if g is None else self.rows(g, "g")
        s = self.backward_statistics(self.statistics(rows, self.number(eps)), self.number(eps))
        return self.pull(rows, self.parameter(gamma, "gamma"), self.parameter(beta, "beta"), cotangent, s)


class LayerNorm(Groups):
    """The groups of x itself."""

    operator = "layer_norm"

    def call(self, x: Array, gamma: Array | None, beta: Array | None, *, eps: float, axes: tuple[int, ...]) -> Array:
        """y, of x's shape and dtype."""
        self.check(x, {"gamma": gamma, "beta": beta}, {}, eps, axes)
        self.begin(x, axes)
        rows = self.rows(x, "x")
        s: Statistics = self.statistics(rows, self.number(eps))
        y = self.output(rows, s, self.parameter(gamma, "gamma"), self.parameter(beta, "beta"))
        return self.write(y, x.shape, x.dtype, "y")

    def vjp(
        self, x: Array, gamma: Array | None, beta: Array | None, g: Array, *, eps: float, axes: tuple[int, ...]
    ) -> tuple[Array, Array | None, Array | None]:
        """(dx, dgamma, dbeta), each of its input's shape and dtype, None for a parameter that is None."""
        self.check(x, {"gamma": gamma, "beta": beta}, {"g": g}, eps, axes)
        self.begin(x, axes)
        p = self.prepared(x, gamma, beta, g, eps)
        dx = self.write(self.input_gradient(p), x.shape, x.dtype, "dx")
        dgamma = None if gamma is None else self.write(self.gamma_gradient(p), gamma.shape, gamma.dtype, "dgamma")
        dbeta = None if beta is None else self.write(self.beta_gradient(p), beta.shape, beta.dtype, "dbeta")
        return dx, dgamma, dbeta

    def jvp(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        tx: Array,
        tgamma: Array | None,
        tbeta: Array | None,
        *,
        eps: float,
        axes: tuple[int, ...],
    ) -> Array:
        """The tangent of y, of x's shape and dtype."""
        self.check(x, {"gamma": gamma, "beta": beta, "tgamma": tgamma, "tbeta": tbeta}, {"tx": tx}, eps, axes)
        self.begin(x, axes)
        p = self.prepared(x, gamma, beta, None, eps)
        ty = self.tangent(p, self.rows(tx, "tx"), self.filled(tgamma, "tgamma"), self.filled(tbeta, "tbeta"))
        return self.write(ty, x.shape, x.dtype, "ty")

    def vjp_vjp(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        g: Array,
        a: Array,
        b: Array | None,
        c: Array | None,
        *,
        eps: float,
        axes: tuple[int, ...],
    ) -> tuple[Array, Array | None, Array]:
        """(x_bar, gamma_bar, g_bar) of the map (x, gamma, g) -> (dx, dgamma, dbeta) at the cotangents (a, b, c)."""
        self.check(x, {"gamma": gamma, "beta": beta, "b": b, "c": c}, {"g": g, "a": a}, eps, axes)
        self.begin(x, axes)
        p = self.prepared(x, gamma, beta, g, eps)
        x_bar, gamma_bar, g_bar = self.second_order(p, self.rows(a, "a"), self.filled(b, "b"), self.filled(c, "c"))
        return (
            self.write(x_bar, x.shape, x.dtype, "x_bar"),
            None if gamma is None else self.write(gamma_bar, gamma.shape, gamma.dtype, "gamma_bar"),
            self.write(g_bar, g.shape, g.dtype, "g_bar"),
        )

    def jvp_vjp(self, x, gamma, beta, g, sx, sgamma, sbeta, *, eps: float, axes: tuple[int, ...]) -> Any:
        """The tangents of (dx, dgamma, dbeta) in the direction (sx, sgamma, sbeta)."""
        return self._nested(self.forward_over_reverse, x, gamma, beta, g, sx, sgamma, sbeta, eps, axes)

    def vjp_jvp(self, x, gamma, beta, tx, tgamma, tbeta, c, *, eps: float, axes: tuple[int, ...]) -> Any:
        """The gradients of <c, ty>."""
        return self._nested(self.reverse_over_forward, x, gamma, beta, c, tx, tgamma, tbeta, eps, axes)

    def jvp_jvp(
        self, x, gamma, beta, tx, tgamma, tbeta, sx, sgamma, sbeta, *, eps: float, axes: tuple[int, ...]
    ) -> Array:
        """The tangent of ty in the direction (sx, sgamma, sbeta)."""
        named = {"gamma": gamma, "beta": beta, "tgamma": tgamma, "sgamma": sgamma}
        self.check(x, named, {"tx": tx, "sx": sx}, eps, axes)
        self.begin(x, axes)
        p = self.prepared(x, gamma, beta, None, eps)
        found = self.second_tangent(
            p, self.rows(tx, "tx"), self.filled(tgamma, "tgamma"), self.rows(sx, "sx"), self.filled(sgamma, "sgamma")
        )
        return self.write(found, x.shape, x.dtype, "tty")

    def _nested(self, step: Any, x, gamma, beta, g, tx, tgamma, tbeta, eps: float, axes: tuple[int, ...]) -> Any:
        named = {"gamma": gamma, "beta": beta, "tgamma": tgamma, "tbeta": tbeta}
        self.check(x, named, {"g": g, "tx": tx}, eps, axes)
        self.begin(x, axes)
        p = self.prepared(x, gamma, beta, g, eps)
        directions = self.rows(tx, "tx"), self.filled(tgamma, "tgamma"), self.filled(tbeta, "tbeta")
        x_bar, gamma_bar = step(p, *directions)
        return (
            self.write(x_bar, x.shape, x.dtype, "x_bar"),
            None if gamma is None else self.write(gamma_bar, gamma.shape, gamma.dtype, "gamma_bar"),
            None if beta is None else np.zeros_like(beta),
        )
