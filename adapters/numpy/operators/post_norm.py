"""post_norm on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import Bending, Block, Call, Directions, Gradients

Array = np.ndarray


class PostNorm(Block):
    """LN(x + sublayer(x))."""

    operator = "post_norm"

    # Forward.

    def add(self, skip: Array, through: Array) -> Array:
        """The sum to be normalised, in the working dtype."""
        return skip + through

    def total(self, x: Array, sublayer: Any) -> Array:
        """The sum of x and the sublayer's result."""
        skip = self.read(x, "x")
        return self.add(skip, self.value(sublayer, x, "sublayer"))

    # Backward.

    def sublayer_gradient(self, sublayer: Any, x: Array, ds: Array) -> Array:
        """The contribution to dx through the sublayer; ds is the cotangent of the sum."""
        return self.pulled(sublayer, x, ds, "sublayer")

    def add_gradient(self, ds: Array, through: Array, g: Array) -> Array:
        """dx from its two contributions; g is the cotangent of y."""
        return ds + through

    # Forward mode and second order.

    def add_tangent(self, tx: Array, through: Array) -> Array:
        """The tangent of the sum."""
        return tx + through

    def add_second_order(self, within: Array, by_sum: Array, by_sublayer: Array) -> Array:
        """
        The cotangent of x, from three terms.

        They come from the sublayer's second derivative, from the norm's, and from the norm's through the sublayer.
        """
        return within + by_sum + by_sublayer

    # The block.

    def value_of(self, call: Call) -> Array:
        """LN of the sum."""
        return self.normed(self.total(call.x, call.sublayer), call, "sum")

    def gradients_of(self, call: Call, g: Array) -> Gradients:
        """The gradients of LN at the sum; the sum's gradient reaches x both directly and through the sublayer."""
        d = self.norm_gradients(self.total(call.x, call.sublayer), call, g)
        through = self.sublayer_gradient(call.sublayer, call.x, d.x)
        return Gradients(self.add_gradient(d.x, through, self.read(g, "g")), d.gamma, d.beta)

    def tangent_of(self, call: Call, tangents: Directions) -> Array:
        """The tangent of LN at the sum, for the sum's tangent."""
        tx, tgamma, tbeta = tangents
        return self.norm_tangent(self.total(call.x, call.sublayer), call, (self.total_tangent(call, tx), tgamma, tbeta))

    def total_tangent(self, call: Call, tx: Array) -> Array:
        """The tangent of the sum, for the tangent of x."""
        t = self.read(tx, "tx")
        return self.add_tangent(t, self.pushed(call.sublayer, call.x, t, "sublayer"))

    def second_order_of(
        self, call: Call, g: Array, cotangents: Directions, bending: Bending
    ) -> tuple[Gradients, Array]:
        """Three terms: the sublayer's second derivative, LN's second derivative, and LN's through the sublayer."""
        (a, b, c), x, sublayer = cotangents, call.x, call.sublayer
        wide_a, total = self.read(a, "a"), self.total(x, sublayer)
        ds = self.norm_gradients(total, call, g).x
        within, ds_bar = self.pulled_twice(sublayer, x, ds, wide_a, "sublayer")
        ds_bar = self.add_tangent(wide_a, ds_bar)
        total_bar, gamma_bar, g_bar = self.norm_second_order(total, call, g, (ds_bar, b, c), bending)
        x_bar = self.add_second_order(within, total_bar, self.pulled(sublayer, x, total_bar, "sublayer"))
        # None of dx, dgamma and dbeta depends on beta.
        return Gradients(x_bar, gamma_bar, np.zeros_like(gamma_bar)), g_bar

    def second_tangent_of(self, call: Call, tangents: Directions, again: Directions) -> Array:
        """Two terms: LN's second derivative along both tangents of the sum, and the sublayer's, through LN."""
        total = self.total(call.x, call.sublayer)
        along = [(self.total_tangent(call, one[0]), *one[1:]) for one in (tangents, again)]
        t, s = (self.read(one[0], "tx") for one in (tangents, again))
        bent = self.pushed_twice(call.sublayer, call.x, t, s, "sublayer")
        by_sublayer = self.norm_tangent(total, call, (bent, None, None))
        return by_sublayer + self.norm_second_tangent(total, call, *along)
