"""What the composed operators share: handing arrays to parts, and taking what parts return."""

from __future__ import annotations

from typing import Any

import numpy as np

from .staged import Staged

Array = np.ndarray


class Composed(Staged):
    """The base of every operator that is handed parts.

    A part is callable and has `vjp(x, g)`, `jvp(x, tx)`, `vjp_vjp(x, g, a)` and `jvp_jvp(x, tx, sx)`. Everything is
    computed in the working dtype; only what a part is handed, and what is handed out, is rounded to the dtype of x.
    """

    def cross(self, array: Array, role: str) -> Array:
        """What a part is handed: a fresh array of x's shape and dtype."""
        return self.write(array, self.shape, self.data, role)

    def accepted(self, result: Any, role: str) -> Array:
        """What a part returned, refused if it is not of x's shape."""
        if result.shape != self.shape:
            raise ValueError(f"{role} must return the shape of x, {self.shape}, not {result.shape}")
        return result

    def taken(self, result: Any, role: str) -> Array:
        """What a part returned, in the working dtype and in memory of its own."""
        return self.read(self.accepted(result, role), role)

    # One method for each thing that a part can be asked.

    def value(self, part: Any, x: Array, role: str) -> Array:
        """The part's value at x, which is handed over as it is."""
        return self.taken(part(x), role)

    def pulled(self, part: Any, x: Array, g: Array, role: str) -> Array:
        """The cotangent of x for the cotangent g of the part's value."""
        return self.taken(part.vjp(x, self.cross(g, role)), role)

    def pushed(self, part: Any, x: Array, tx: Array, role: str) -> Array:
        """The tangent of the part's value for the tangent tx of x."""
        return self.taken(part.jvp(x, self.cross(tx, role)), role)

    def pulled_twice(self, part: Any, x: Array, g: Array, a: Array, role: str) -> tuple[Array, Array]:
        """The cotangents of x and of g for the cotangent a of `pulled`."""
        x_bar, g_bar = part.vjp_vjp(x, self.cross(g, role), self.cross(a, role))
        return self.taken(x_bar, role), self.taken(g_bar, role)

    def pushed_twice(self, part: Any, x: Array, tx: Array, sx: Array, role: str) -> Array:
        """The second derivative of the part's value along tx and sx."""
        return self.taken(part.jvp_jvp(x, self.cross(tx, role), self.cross(sx, role)), role)

    # One mode over the other: the second derivative of <y, g> is symmetric, so that either is the vjp of the vjp.

    def vjp_vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The cotangents of the inputs and of g of the map to the gradients."""
        raise NotImplementedError

    def jvp_vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The tangents of the gradients: handed what the operator is, g and a direction of each input."""
        return self.vjp_vjp(*arrays, **settings)[:-1]

    def vjp_jvp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The gradients of <ty, g>: handed what the operator is, a tangent of each input and g."""
        count = len(self.record.arguments)
        return self.vjp_vjp(*arrays[:count], arrays[-1], *arrays[count:-1], **settings)[:-1]
