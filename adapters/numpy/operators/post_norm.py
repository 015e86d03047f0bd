"""post_norm on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import Block

Array = np.ndarray


class PostNorm(Block):
    """LN(x + sublayer(x))."""

    operator = "post_norm"

    # Forward.

    def add(self, skip: Array, through: Array) -> Array:
        """The sum that is normalised, in the working dtype."""
        return skip + through

    def total(self, x: Array, sublayer: Any) -> Array:
        """The sum of x and the sublayer's result."""
        skip = self.read(x, "x")
        return self.add(skip, self.value(sublayer, x, "sublayer"))

    # Backward.

    def sublayer_gradient(self, sublayer: Any, x: Array, ds: Array) -> Array:
        """What reaches x through the sublayer, ds being the cotangent of the sum."""
        return self.pulled(sublayer, x, ds, "sublayer")

    def add_gradient(self, ds: Array, through: Array, g: Array) -> Array:
        """dx from its two contributions; g is the cotangent of y."""
        return ds + through

    # Forward mode and second order.

    def add_tangent(self, tx: Array, through: Array) -> Array:
        """The tangent of the sum."""
        return tx + through

    def add_second_order(self, within: Array, by_sum: Array, by_sublayer: Array) -> Array:
        """The cotangent of x: where the sublayer bends, where the norm does, and that again through the sublayer."""
        return within + by_sum + by_sublayer

    # The canonical callables.

    def call(self, x: Array, sublayer: Any, gamma: Array | None, beta: Array | None, *, eps: float) -> Array:
        """y, of x's shape and dtype."""
        self.begin_block(x, gamma, beta, eps)
        y = self.normed(self.total(x, sublayer), gamma, beta, eps, "sum")
        return self.write(y, x.shape, x.dtype, "y")

    def vjp(
        self, x: Array, sublayer: Any, gamma: Array | None, beta: Array | None, g: Array, *, eps: float
    ) -> tuple[Array, Array | None, Array | None]:
        """(dx, dgamma, dbeta), each of its input's shape and dtype, None for a parameter that is None."""
        self.begin_block(x, gamma, beta, eps, g=g)
        d = self.norm_gradients(self.total(x, sublayer), gamma, beta, g, eps)
        dx = self.add_gradient(d.x, self.sublayer_gradient(sublayer, x, d.x), self.read(g, "g"))
        return (
            self.write(dx, x.shape, x.dtype, "dx"),
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
        ts = self.add_tangent(t, self.pushed(sublayer, x, t, "sublayer"))
        ty = self.norm_tangent(self.total(x, sublayer), gamma, beta, ts, tgamma, tbeta, eps)
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
        wide_a = self.read(a, "a")
        total = self.total(x, sublayer)
        ds = self.norm_gradients(total, gamma, beta, g, eps).x
        within, ds_bar = self.pulled_twice(sublayer, x, ds, wide_a, "sublayer")
        ds_bar = self.add_tangent(wide_a, ds_bar)
        total_bar, gamma_bar, g_bar = self.norm_second_order(total, gamma, beta, g, ds_bar, b, c, eps)
        x_bar = self.add_second_order(within, total_bar, self.pulled(sublayer, x, total_bar, "sublayer"))
        return (
            self.write(x_bar, x.shape, x.dtype, "x_bar"),
            self.parameter_result(gamma_bar, gamma, "gamma_bar"),
            # Neither dx, dgamma nor dbeta depends on beta.
            None if beta is None else np.zeros_like(beta, order="C", subok=False),
            self.write(g_bar, g.shape, g.dtype, "g_bar"),
        )
