"""Shared code of the composed operators: passing arrays to parts, and taking their results."""

from __future__ import annotations

from typing import Any

import numpy as np

from .staged import Staged

Array = np.ndarray


class Composed(Staged):
    """The base of every operator that takes parts.

    A part is callable and has `vjp(x, g)`, `jvp(x, tx)`, `vjp_vjp(x, g, a)` and `jvp_jvp(x, tx, sx)`. Everything is
    computed in the working dtype; only the inputs of parts and the final results are rounded to the dtype of x.
    """

    def part_input(self, array: Array, role: str) -> Array:
        """The input of a part: a new array of x's shape and dtype."""
        return self.write(array, self.shape, self.data, role)

    def accepted(self, result: Any, role: str) -> Array:
        """A part's result; raises ValueError if it does not have x's shape."""
        if result.shape != self.shape:
            raise ValueError(f"{role} must return the shape of x, {self.shape}, not {result.shape}")
        return result

    def taken(self, result: Any, role: str) -> Array:
        """A part's result, in the working dtype and in memory of its own."""
        return self.read(self.accepted(result, role), role)

    # One method for each way to use a part.

    def value(self, part: Any, x: Array, role: str) -> Array:
        """The part's value at x; x is passed as it is."""
        return self.taken(part(x), role)

    def pulled(self, part: Any, x: Array, g: Array, role: str) -> Array:
        """The cotangent of x for the cotangent g of the part's value."""
        return self.taken(part.vjp(x, self.part_input(g, role)), role)

    def pushed(self, part: Any, x: Array, tx: Array, role: str) -> Array:
        """The tangent of the part's value for the tangent tx of x."""
        return self.taken(part.jvp(x, self.part_input(tx, role)), role)

    def pulled_twice(self, part: Any, x: Array, g: Array, a: Array, role: str) -> tuple[Array, Array]:
        """The cotangents of x and of g for the cotangent a of `pulled`."""
        x_bar, g_bar = part.vjp_vjp(x, self.part_input(g, role), self.part_input(a, role))
        return self.taken(x_bar, role), self.taken(g_bar, role)

    def pushed_twice(self, part: Any, x: Array, tx: Array, sx: Array, role: str) -> Array:
        """The second derivative of the part's value along tx and sx."""
        return self.taken(part.jvp_jvp(x, self.part_input(tx, role), self.part_input(sx, role)), role)

    # Forward and reverse mode nested either way: both equal the vjp of the vjp, because the second derivative of <y, g>
    # is symmetric.

    def vjp_vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The vjp of the map to the gradients: the cotangents of the inputs and of g."""
        raise NotImplementedError

    def jvp_vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The tangents of the gradients. The arguments: those of the operator, g, and a direction of each input."""
        return self.vjp_vjp(*arrays, **settings)[:-1]

    def vjp_jvp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The gradients of <ty, g>. The arguments: those of the operator, a tangent of each input, and g."""
        count = len(self.record.arguments)
        return self.vjp_vjp(*arrays[:count], arrays[-1], *arrays[count:-1], **settings)[:-1]
