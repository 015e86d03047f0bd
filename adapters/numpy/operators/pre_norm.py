"""pre_norm on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import Block, Gradients

Array = np.ndarray


class PreNorm(Block):
    """x + sublayer(LN(x))."""

    operator = "pre_norm"

    # Forward.

    def handed(self, x: Array, gamma: Array | None, beta: Array | None, eps: float) -> Array:
        """What the sublayer is handed: LN(x), rounded to the dtype of x."""
        return self.cross(self.normed(x, gamma, beta, eps), "sublayer")

    def skip(self, x: Array, normed: Array) -> Array:
        """What the sublayer's result is added to: x itself."""
        return self.read(x, "x")

    def add(self, skip: Array, through: Array) -> Array:
        """The sum of the two paths."""
        return skip + through

    # Backward.

    def sublayer_gradient(self, sublayer: Any, normed: Array, g: Array) -> Array:
        """The cotangent of LN(x)."""
        return self.pulled(sublayer, normed, g, "sublayer")

    def add_gradient(self, g: Array, through: Array) -> Array:
        """dx from its two contributions, g being what the skip path carries."""
        return g + through

    def combined(self, g: Array, norm: Gradients) -> Gradients:
        """The block's gradients from those of the inner LayerNorm."""
        return Gradients(self.add_gradient(g, norm.x), norm.gamma, norm.beta)

    # Forward mode and second order.

    def add_tangent(self, tx: Array, through: Array) -> Array:
        """The tangent of the sum."""
        return tx + through

    def add_second_order(self, inner: Gradients, outer: Gradients) -> Gradients:
        """The cotangents of x, gamma and beta: those within the gradient and those by way of the sublayer's input."""
        return Gradients(inner.x + outer.x, inner.gamma + outer.gamma, inner.beta + outer.beta)

    # The canonical callables.

    def call(self, x: Array, sublayer: Any, gamma: Array | None, beta: Array | None, *, eps: float) -> Array:
        """y, of x's shape and dtype."""
        self.begin_block(x, gamma, beta, eps)
        normed = self.handed(x, gamma, beta, eps)
        y = self.add(self.skip(x, normed), self.value(sublayer, normed, "sublayer"))
        return self.write(y, x.shape, x.dtype, "y")

    def vjp(
        self, x: Array, sublayer: Any, gamma: Array | None, beta: Array | None, g: Array, *, eps: float
    ) -> tuple[Array, Array | None, Array | None]:
        """(dx, dgamma, dbeta), each of its input's shape and dtype, None for a parameter that is None."""
        self.begin_block(x, gamma, beta, eps, g=g)
        upstream = self.read(g, "g")
        h = self.sublayer_gradient(sublayer, self.handed(x, gamma, beta, eps), upstream)
        d = self.combined(upstream, self.norm_gradients(x, gamma, beta, h, eps))
        return (
            self.write(d.x, x.shape, x.dtype, "dx"),
            self.parameter_result(d.gamma, gamma, "dgamma"),
            self.parameter_result(d.beta, beta, "dbeta"),
        )

    def jvp(
        self,
        x: Array,
        sublayer: Any,
        gamma: Array | None,
        beta: Array | None,
        tx: Array,
        tgamma: Array | None,
        tbeta: Array | None,
        *,
        eps: float,
    ) -> Array:
        """The tangent of y, of x's shape and dtype."""
        self.begin_block(x, gamma, beta, eps, {"tgamma": tgamma, "tbeta": tbeta}, tx=tx)
        t = self.read(tx, "tx")
        inner = self.norm_tangent(x, gamma, beta, t, tgamma, tbeta, eps)
        ty = self.add_tangent(t, self.pushed(sublayer, self.handed(x, gamma, beta, eps), inner, "sublayer"))
        return self.write(ty, x.shape, x.dtype, "ty")

    def vjp_vjp(
        self,
        x: Array,
        sublayer: Any,
        gamma: Array | None,
        beta: Array | None,
        g: Array,
        a: Array,
        b: Array | None,
        c: Array | None,
        *,
        eps: float,
    ) -> tuple[Array, Array | None, Array | None, Array]:
        """(x_bar, gamma_bar, beta_bar, g_bar) of the map (x, gamma, beta, g) -> (dx, dgamma, dbeta) at (a, b, c)."""
        self.begin_block(x, gamma, beta, eps, {"b": b, "c": c}, g=g, a=a)
        upstream, wide_a = self.read(g, "g"), self.read(a, "a")
        normed = self.handed(x, gamma, beta, eps)
        h = self.pulled(sublayer, normed, upstream, "sublayer")
        x_bar, gamma_bar, h_bar = self.norm_second_order(x, gamma, beta, h, wide_a, b, c, eps)
        inner = Gradients(x_bar, gamma_bar, np.zeros_like(gamma_bar))
        normed_bar, g_bar = self.pulled_twice(sublayer, normed, upstream, h_bar, "sublayer")
        bar = self.add_second_order(inner, self.norm_gradients(x, gamma, beta, normed_bar, eps))
        return (
            self.write(bar.x, x.shape, x.dtype, "x_bar"),
            self.parameter_result(bar.gamma, gamma, "gamma_bar"),
            self.parameter_result(bar.beta, beta, "beta_bar"),
            self.write(self.add_tangent(wide_a, g_bar), g.shape, g.dtype, "g_bar"),
        )
