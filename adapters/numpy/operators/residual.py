"""residual on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import check_shapes
from .composed import Composed

Array = np.ndarray


class Residual(Composed):
    """activation(shortcut(x) + branch(x)), None standing for the identity."""

    operator = "residual"

    def begin(self, x: Array, **likewise: Array) -> None:
        """Note the shape and dtypes of this call, and refuse cotangents and tangents of another shape."""
        check_shapes(likewise, x.shape)
        self.begin_with(x)

    # Forward.

    def branch_value(self, x: Array, branch: Any) -> Array:
        """The branch's value, which is added to the skip path."""
        return self.value(branch, x, "branch")

    def skip(self, x: Array, shortcut: Any) -> Array:
        """The skip path, to which the branch is added: x, or the shortcut of x."""
        return self.read(x, "x") if shortcut is None else self.value(shortcut, x, "shortcut")

    def add(self, skip: Array, branch: Array) -> Array:
        """The sum of the two paths."""
        return skip + branch

    def total(self, x: Array, branch: Any, shortcut: Any) -> Array:
        """The sum, before the activation."""
        skip = self.skip(x, shortcut)
        return self.add(skip, self.branch_value(x, branch))

    def activated(self, total: Array, activation: Any) -> Array:
        """The activation of the sum."""
        if activation is None:
            return total
        return self.value(activation, self.part_input(total, "activation"), "activation")

    # Backward.

    def upstream(self, total: Array, activation: Any, g: Array) -> Array:
        """The cotangent of the sum."""
        return self.pulled(activation, self.part_input(total, "activation"), g, "activation")

    def branch_gradient(self, x: Array, branch: Any, u: Array) -> Array:
        """The contribution to dx through the branch."""
        return self.pulled(branch, x, u, "branch")

    def skip_gradient(self, x: Array, shortcut: Any, u: Array) -> Array:
        """The contribution to dx through the skip path."""
        return u if shortcut is None else self.pulled(shortcut, x, u, "shortcut")

    def add_gradient(self, skip: Array, branch: Array, u: Array) -> Array:
        """dx from its two contributions; u is the cotangent of the sum."""
        return skip + branch

    # Forward mode and second order.

    def add_tangent(self, skip: Array, branch: Array) -> Array:
        """The tangent of the sum."""
        return skip + branch

    def sum_tangent(self, x: Array, branch: Any, shortcut: Any, t: Array) -> Array:
        """The tangent of the sum, for the tangent of x."""
        skip = t if shortcut is None else self.pushed(shortcut, x, t, "shortcut")
        return self.add_tangent(skip, self.pushed(branch, x, t, "branch"))

    def curvatures(self, skip: Array, branch: Array) -> Array:
        """The change of dx from the second derivatives of the two paths."""
        return skip + branch

    def cotangents(self, skip: Array, branch: Array) -> Array:
        """The cotangent of u, summed over the two paths."""
        return skip + branch

    # The canonical callables; the base class has those that nest forward and reverse mode.

    def call(self, x: Array, branch: Any, *, shortcut: Any = None, activation: Any = None) -> Array:
        """y, of x's shape and dtype."""
        self.begin(x)
        return self.write(self.activated(self.total(x, branch, shortcut), activation), x.shape, x.dtype, "y")

    def vjp(self, x: Array, branch: Any, g: Array, *, shortcut: Any = None, activation: Any = None) -> tuple[Array]:
        """(dx,), of x's shape and dtype."""
        self.begin(x, g=g)
        u = self.read(g, "g")
        if activation is not None:
            u = self.upstream(self.total(x, branch, shortcut), activation, u)
        skip, through = self.skip_gradient(x, shortcut, u), self.branch_gradient(x, branch, u)
        return (self.write(self.add_gradient(skip, through, u), x.shape, x.dtype, "dx"),)

    def jvp(self, x: Array, branch: Any, tx: Array, *, shortcut: Any = None, activation: Any = None) -> Array:
        """The tangent of y, of x's shape and dtype."""
        self.begin(x, tx=tx)
        t = self.read(tx, "tx")
        ty = self.sum_tangent(x, branch, shortcut, t)
        if activation is not None:
            total = self.part_input(self.total(x, branch, shortcut), "activation")
            ty = self.pushed(activation, total, ty, "activation")
        return self.write(ty, x.shape, x.dtype, "ty")

    def vjp_vjp(
        self, x: Array, branch: Any, g: Array, a: Array, *, shortcut: Any = None, activation: Any = None
    ) -> tuple[Array, Array]:
        """(x_bar, g_bar) of the map (x, g) -> dx at the cotangent a."""
        self.begin(x, g=g, a=a)
        u, wide_a = self.read(g, "g"), self.read(a, "a")
        total = None
        if activation is not None:
            total = self.part_input(self.total(x, branch, shortcut), "activation")
            u = self.upstream(total, activation, u)
        skip, skip_back = np.zeros_like(wide_a), wide_a
        if shortcut is not None:
            skip, skip_back = self.pulled_twice(shortcut, x, u, wide_a, "shortcut")
        through, back = self.pulled_twice(branch, x, u, wide_a, "branch")
        x_bar, g_bar = self.curvatures(skip, through), self.cotangents(skip_back, back)
        if total is not None:
            total_bar, g_bar = self.pulled_twice(activation, total, self.read(g, "g"), g_bar, "activation")
            x_bar = x_bar + self.skip_gradient(x, shortcut, total_bar)
            x_bar = x_bar + self.branch_gradient(x, branch, total_bar)
        return self.write(x_bar, x.shape, x.dtype, "x_bar"), self.write(g_bar, g.shape, g.dtype, "g_bar")

    def jvp_jvp(
        self, x: Array, branch: Any, tx: Array, sx: Array, *, shortcut: Any = None, activation: Any = None
    ) -> Array:
        """The tangent along sx of the tangent of y along tx."""
        self.begin(x, tx=tx, sx=sx)
        t, s = self.read(tx, "tx"), self.read(sx, "sx")
        skip = np.zeros_like(t) if shortcut is None else self.pushed_twice(shortcut, x, t, s, "shortcut")
        bent = self.add_tangent(skip, self.pushed_twice(branch, x, t, s, "branch"))
        if activation is not None:
            total = self.part_input(self.total(x, branch, shortcut), "activation")
            t, s = (self.sum_tangent(x, branch, shortcut, one) for one in (t, s))
            bent = self.pushed(activation, total, bent, "activation")
            bent = bent + self.pushed_twice(activation, total, t, s, "activation")
        return self.write(bent, x.shape, x.dtype, "tty")
