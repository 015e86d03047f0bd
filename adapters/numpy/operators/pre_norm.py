"""pre_norm on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import Bending, Block, Call, Directions, Gradients

Array = np.ndarray


class PreNorm(Block):
    """x + sublayer(LN(x))."""

    operator = "pre_norm"

    # Forward.

    def handed(self, call: Call) -> Array:
        """The sublayer's input: LN(x), rounded to the dtype of x."""
        return self.part_input(self.normed(call.x, call), "sublayer")

    def skip(self, x: Array, normed: Array) -> Array:
        """The skip path, to which the sublayer's result is added: x itself."""
        return self.read(x, "x")

    def add(self, skip: Array, through: Array) -> Array:
        """The sum of the two paths."""
        return skip + through

    # Backward.

    def sublayer_gradient(self, sublayer: Any, normed: Array, g: Array) -> Array:
        """The cotangent of LN(x)."""
        return self.pulled(sublayer, normed, g, "sublayer")

    def add_gradient(self, g: Array, through: Array) -> Array:
        """dx from its two contributions; g is that of the skip path."""
        return g + through

    def combined(self, g: Array, norm: Gradients) -> Gradients:
        """The block's gradients from those of the inner LayerNorm."""
        return Gradients(self.add_gradient(g, norm.x), norm.gamma, norm.beta)

    # Forward mode and second order.

    def add_tangent(self, tx: Array, through: Array) -> Array:
        """The tangent of the sum."""
        return tx + through

    def add_second_order(self, inner: Gradients, outer: Gradients) -> Gradients:
        """The cotangents of x, gamma and beta: through LN's gradients, and through the sublayer's input."""
        return Gradients(inner.x + outer.x, inner.gamma + outer.gamma, inner.beta + outer.beta)

    # The block.

    def value_of(self, call: Call) -> Array:
        """The sum of x and the sublayer's value at LN(x)."""
        normed = self.handed(call)
        return self.add(self.skip(call.x, normed), self.value(call.sublayer, normed, "sublayer"))

    def gradients_of(self, call: Call, g: Array) -> Gradients:
        """The gradients of LN for the cotangent that comes through the sublayer, plus g itself."""
        upstream = self.read(g, "g")
        h = self.sublayer_gradient(call.sublayer, self.handed(call), upstream)
        return self.combined(upstream, self.norm_gradients(call.x, call, h))

    def tangent_of(self, call: Call, tangents: Directions) -> Array:
        """The tangent of x plus the tangent of LN(x) through the sublayer."""
        tx, tgamma, tbeta = tangents
        t = self.read(tx, "tx")
        inner = self.norm_tangent(call.x, call, (t, tgamma, tbeta))
        return self.add_tangent(t, self.pushed(call.sublayer, self.handed(call), inner, "sublayer"))

    def second_order_of(
        self, call: Call, g: Array, cotangents: Directions, bending: Bending
    ) -> tuple[Gradients, Array]:
        """Two terms: LN's second derivative, and the sublayer's, through its input."""
        a, b, c = cotangents
        upstream, wide_a = self.read(g, "g"), self.read(a, "a")
        normed = self.handed(call)
        h = self.pulled(call.sublayer, normed, upstream, "sublayer")
        x_bar, gamma_bar, h_bar = self.norm_second_order(call.x, call, h, (wide_a, b, c), bending)
        inner = Gradients(x_bar, gamma_bar, np.zeros_like(gamma_bar))
        normed_bar, g_bar = self.pulled_twice(call.sublayer, normed, upstream, h_bar, "sublayer")
        bar = self.add_second_order(inner, self.norm_gradients(call.x, call, normed_bar))
        return bar, self.add_tangent(wide_a, g_bar)

    def second_tangent_of(self, call: Call, tangents: Directions, again: Directions) -> Array:
        """Two terms: the sublayer's second derivative along both tangents of LN(x), and LN's, through the sublayer."""
        normed, directions = self.handed(call), [(self.read(one[0], "tx"), *one[1:]) for one in (tangents, again)]
        t, s = (self.norm_tangent(call.x, call, one) for one in directions)
        bent = self.norm_second_tangent(call.x, call, *directions)
        by_norm = self.pushed(call.sublayer, normed, bent, "sublayer")
        return by_norm + self.pushed_twice(call.sublayer, normed, t, s, "sublayer")
