"""
Highway on NumPy arrays, with its derivatives.

    y = H t + x c        H = transform(x), t = sigmoid(z), z = gate(x)
    c = 1 - t without carry, sigmoid(carry(x)) with it

Without carry c is a function of z, and the gradients of t and c arrive there together: dz = g (H - x) t (1 - t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arguments import check_float, like
from .arithmetic import Array, widened


def highway(x, transform, gate, *, carry: Any = None) -> Array:
    """y in x's shape and dtype. Raises ValueError where a part's result has another shape."""
    at = _Point.of(x, transform, gate, carry)
    return (at.h * at.t + at.x * at.c).astype(x.dtype)


def highway_vjp(x, transform, gate, g, *, carry: Any = None) -> tuple[Array]:
    """(dx,) of sum(y * g)."""
    at, wide = _Point.of(x, transform, gate, carry), widened(like(g, x, "g"))
    dx = wide * at.c + at.pulled(transform, wide * at.t) + at.pulled(gate, wide * at.slope)
    if carry is not None:
        dx = dx + at.pulled(carry, wide * at.carry_slope)
    return (dx.astype(x.dtype),)


def highway_jvp(x, transform, gate, tx, *, carry: Any = None) -> Array:
    """The tangent of y."""
    at, wide = _Point.of(x, transform, gate, carry), widened(like(tx, x, "tx"))
    ty = widened(transform.jvp(x, tx)) * at.t + wide * at.c + widened(gate.jvp(x, tx)) * at.slope
    if carry is not None:
        ty = ty + widened(carry.jvp(x, tx)) * at.carry_slope
    return ty.astype(x.dtype)


def highway_vjp_vjp(x, transform, gate, g, a, *, carry: Any = None) -> tuple[Array, Array]:
    """
    (x_bar, g_bar): the vjp of the vjp at cotangent a.

    dx = g c + transform.vjp(x, g t) + gate.vjp(x, g slope) [+ carry.vjp(x, g carry_slope)]; u, v and w are the
    cotangents that reach what the parts' vjps were handed.
    """
    at, wide, along = _Point.of(x, transform, gate, carry), widened(like(g, x, "g")), widened(like(a, x, "a"))
    x_bar, u = at.second(transform, wide * at.t, a)
    more, v = at.second(gate, wide * at.slope, a)
    x_bar = x_bar + more
    g_bar = along * at.c + u * at.t + v * at.slope
    h_bar = wide * v * at.s
    if carry is None:
        z_bar = wide * at.s * (u - along + v * (at.h - at.x) * (at.not_t - at.t))
        x_bar = x_bar - h_bar
    else:
        more, w = at.second(carry, wide * at.carry_slope, a)
        z_bar = wide * at.s * (u + v * at.h * (at.not_t - at.t))
        carry_bar = wide * at.carry_s * (along + w * at.x * (at.not_c - at.c))
        x_bar = x_bar + more + wide * w * at.carry_s + at.pulled(carry, carry_bar)
        g_bar = g_bar + w * at.carry_slope
    x_bar = x_bar + at.pulled(transform, h_bar) + at.pulled(gate, z_bar)
    return x_bar.astype(x.dtype), g_bar.astype(g.dtype)


@dataclass(frozen=True)
class _Point:
    """What the parts returned, and the gates, in the dtype that is computed in."""

    #: x as given, which parts are handed.
    given: Array
    x: Array
    h: Array
    #: The gates, and one minus each of them.
    t: Array
    not_t: Array
    c: Array
    not_c: Array
    #: Whether c has logits of its own.
    carried: bool

    @classmethod
    def of(cls, x, transform, gate, carry) -> _Point:
        check_float(x, "x")
        h = widened(like(transform(x), x, "the transform's result"))
        t, not_t = _sigmoid(widened(like(gate(x), x, "the gate's result")))
        if carry is None:
            return cls(x, widened(x), h, t, not_t, not_t, t, carried=False)
        c, not_c = _sigmoid(widened(like(carry(x), x, "the carry's result")))
        return cls(x, widened(x), h, t, not_t, c, not_c, carried=True)

    @property
    def s(self) -> Array:
        """The derivative of t by its logit."""
        return self.t * self.not_t

    @property
    def slope(self) -> Array:
        """The derivative of y by the gate's logit."""
        return (self.h if self.carried else self.h - self.x) * self.s

    @property
    def carry_s(self) -> Array:
        """The derivative of c by its logit."""
        return self.c * self.not_c

    @property
    def carry_slope(self) -> Array:
        """The derivative of y by the carry's logit."""
        return self.x * self.carry_s

    def pulled(self, part, cotangent: Array) -> Array:
        return widened(part.vjp(self.given, cotangent.astype(self.given.dtype)))

    def second(self, part, cotangent: Array, a: Array) -> tuple[Array, Array]:
        x_bar, bar = part.vjp_vjp(self.given, cotangent.astype(self.given.dtype), a)
        return widened(x_bar), widened(bar)


def _sigmoid(z: Array) -> tuple[Array, Array]:
    """sigmoid(z) and sigmoid(-z), each with its own digits; exp is only taken of what is not positive."""
    e = np.exp(-np.abs(z))
    high, low = 1.0 / (1.0 + e), e / (1.0 + e)
    return np.where(z >= 0.0, high, low), np.where(z >= 0.0, low, high)
