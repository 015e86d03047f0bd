"""highway on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arguments import check_shapes
from .composed import Composed

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Paths:
    """The intermediate values of one call, in the working dtype."""

    x: Array
    #: The transform's value.
    transformed: Array
    #: The gate's logits, and the carry's if it has a gate of its own.
    logits: Array
    carry_logits: Array | None
    #: The transform gate and the carry gate.
    t: Array
    c: Array


class Highway(Composed):
    """transform(x) t + x c, with t the logistic function of the gate's logits, and c = 1 - t or a gate of its own."""

    operator = "highway"

    def begin(self, x: Array, **likewise: Array) -> None:
        """Note the shape and dtypes of this call, and refuse cotangents and tangents of another shape."""
        check_shapes(likewise, x.shape)
        self.begin_with(x)

    # Gates.

    def sigmoid(self, z: Array) -> Array:
        """1 / (1 + exp(-z)), from exp(-|z|), which cannot overflow."""
        e = np.exp(-np.abs(z))
        return np.where(z >= 0, 1 / (1 + e), e / (1 + e))

    def transform_gate(self, z: Array) -> Array:
        """t from the gate's logits."""
        return self.sigmoid(z)

    def coupled_carry(self, z: Array, t: Array) -> Array:
        """c = 1 - t from the gate's logits, without cancellation."""
        return self.sigmoid(-z)

    def carry_gate(self, z: Array) -> Array:
        """c from the carry's logits."""
        return self.sigmoid(z)

    def slope(self, z: Array) -> Array:
        """The derivative of the logistic function, t (1 - t)."""
        return self.sigmoid(z) * self.sigmoid(-z)

    def gate_second_derivative(self, z: Array) -> Array:
        """The second derivative of the logistic function, t (1 - t) (1 - 2 t)."""
        return self.slope(z) * (self.sigmoid(-z) - self.sigmoid(z))

    # Forward.

    def paths(self, x: Array, transform: Any, gate: Any, carry: Any) -> Paths:
        """Call every part once."""
        transformed, logits = self.value(transform, x, "transform"), self.value(gate, x, "gate")
        t = self.transform_gate(logits)
        if carry is None:
            return Paths(self.read(x, "x"), transformed, logits, None, t, self.coupled_carry(logits, t))
        carry_logits = self.value(carry, x, "carry")
        return Paths(self.read(x, "x"), transformed, logits, carry_logits, t, self.carry_gate(carry_logits))

    def mix(self, p: Paths) -> Array:
        """y from the two paths and their gates."""
        return p.transformed * p.t + p.x * p.c

    # Backward: the contributions to dx, and the cotangents passed to the parts.

    def skip_gradient(self, p: Paths, g: Array) -> Array:
        """The contribution that reaches x directly: g c."""
        return g * p.c

    def transform_cotangent(self, p: Paths, g: Array) -> Array:
        """The cotangent of the transform's value: g t."""
        return g * p.t

    def gated(self, p: Paths) -> Array:
        """The factor of the transform gate's derivative: H - x, or H if the carry has a gate of its own."""
        return p.transformed - p.x if p.carry_logits is None else p.transformed

    def logits_cotangent(self, p: Paths, g: Array) -> Array:
        """The cotangent of the gate's logits."""
        return g * self.gated(p) * self.slope(p.logits)

    def carry_cotangent(self, p: Paths, g: Array, carry_logits: Array) -> Array:
        """The cotangent of the carry's logits: g x c (1 - c)."""
        return g * p.x * self.slope(carry_logits)

    def contributions(self, p: Paths, x: Array, transform: Any, gate: Any, carry: Any, g: Array) -> list[Array]:
        """The contributions to dx: direct, through the transform, through the gate, and through the carry."""
        found = [
            self.skip_gradient(p, g),
            self.pulled(transform, x, self.transform_cotangent(p, g), "transform"),
            self.pulled(gate, x, self.logits_cotangent(p, g), "gate"),
        ]
        if p.carry_logits is not None:
            found.append(self.pulled(carry, x, self.carry_cotangent(p, g, p.carry_logits), "carry"))
        return found

    def input_gradient(self, contributions: list[Array]) -> Array:
        """dx from its contributions, in order."""
        return sum(contributions[1:], contributions[0])

    # The canonical callables; the base class has those that nest forward and reverse mode.

    def call(self, x: Array, transform: Any, gate: Any, *, carry: Any = None) -> Array:
        """y, of x's shape and dtype."""
        self.begin(x)
        return self.write(self.mix(self.paths(x, transform, gate, carry)), x.shape, x.dtype, "y")

    def vjp(self, x: Array, transform: Any, gate: Any, g: Array, *, carry: Any = None) -> tuple[Array]:
        """(dx,), of x's shape and dtype."""
        self.begin(x, g=g)
        p = self.paths(x, transform, gate, carry)
        dx = self.input_gradient(self.contributions(p, x, transform, gate, carry, self.read(g, "g")))
        return (self.write(dx, x.shape, x.dtype, "dx"),)

    def jvp(self, x: Array, transform: Any, gate: Any, tx: Array, *, carry: Any = None) -> Array:
        """The tangent of y, of x's shape and dtype."""
        self.begin(x, tx=tx)
        p = self.paths(x, transform, gate, carry)
        t = self.read(tx, "tx")
        tangents = [self.pushed(transform, x, t, "transform"), self.pushed(gate, x, t, "gate")]
        if carry is not None:
            tangents.append(self.pushed(carry, x, t, "carry"))
        return self.write(self.tangent(p, t, *tangents), x.shape, x.dtype, "ty")

    def tangent(self, p: Paths, tx: Array, transformed: Array, logits: Array, carry: Array | None = None) -> Array:
        """The tangent of y, from the tangents of x and of the parts' values."""
        ty = tx * p.c + transformed * p.t + self.gated(p) * self.slope(p.logits) * logits
        if carry is None or p.carry_logits is None:
            return ty
        return ty + p.x * self.slope(p.carry_logits) * carry

    def vjp_vjp(
        self, x: Array, transform: Any, gate: Any, g: Array, a: Array, *, carry: Any = None
    ) -> tuple[Array, Array]:
        """(x_bar, g_bar) of the map (x, g) -> dx at the cotangent a."""
        self.begin(x, g=g, a=a)
        p = self.paths(x, transform, gate, carry)
        wide_g, wide_a = self.read(g, "g"), self.read(a, "a")
        by_transform, h = self.pulled_twice(transform, x, self.transform_cotangent(p, wide_g), wide_a, "transform")
        by_gate, z = self.pulled_twice(gate, x, self.logits_cotangent(p, wide_g), wide_a, "gate")
        slope = self.slope(p.logits)
        # h and z are the cotangents of the cotangents passed to the transform and the gate.
        g_bar = wide_a * p.c + h * p.t + z * self.gated(p) * slope
        transformed_bar = z * wide_g * slope
        along = h if p.carry_logits is not None else h - wide_a
        logits_bar = wide_g * (along * slope + z * self.gated(p) * self.gate_second_derivative(p.logits))
        x_bar = by_transform + by_gate
        if p.carry_logits is None:
            x_bar = x_bar - transformed_bar
        else:
            by_carry, k = self.pulled_twice(carry, x, self.carry_cotangent(p, wide_g, p.carry_logits), wide_a, "carry")
            carry_slope = self.slope(p.carry_logits)
            g_bar = g_bar + k * p.x * carry_slope
            carry_bar = wide_g * (wide_a * carry_slope + k * p.x * self.gate_second_derivative(p.carry_logits))
            x_bar = x_bar + by_carry + k * wide_g * carry_slope + self.pulled(carry, x, carry_bar, "carry")
        x_bar = x_bar + self.pulled(transform, x, transformed_bar, "transform")
        x_bar = x_bar + self.pulled(gate, x, logits_bar, "gate")
        return self.write(x_bar, x.shape, x.dtype, "x_bar"), self.write(g_bar, g.shape, g.dtype, "g_bar")

    def jvp_jvp(self, x: Array, transform: Any, gate: Any, tx: Array, sx: Array, *, carry: Any = None) -> Array:
        """The tangent along sx of the tangent of y along tx."""
        self.begin(x, tx=tx, sx=sx)
        p = self.paths(x, transform, gate, carry)
        directions = [self.read(tx, "tx"), self.read(sx, "sx")]
        roles = [(transform, "transform"), (gate, "gate"), *([] if carry is None else [(carry, "carry")])]
        along = [[self.pushed(part, x, one, role) for part, role in roles] for one in directions]
        bent = [self.pushed_twice(part, x, directions[0], directions[1], role) for part, role in roles]
        return self.write(self.second_tangent(p, directions, along, bent), x.shape, x.dtype, "tty")

    def second_tangent(self, p: Paths, directions: list[Array], along: list[list[Array]], bent: list[Array]) -> Array:
        """
        The second derivative of y along two directions of x.

        `along` holds the tangents of the parts' values for each direction, `bent` their second derivatives.
        """
        (tx, sx), (t, s) = directions, along
        found = self.tangent(p, np.zeros_like(tx), *bent)
        found = found + self.gated(p) * self.gate_second_derivative(p.logits) * t[1] * s[1]
        # The factors of the transform gate and of the carry gate move too.
        beside = [t[0], s[0]] if p.carry_logits is not None else [t[0] - tx, s[0] - sx]
        found = found + self.slope(p.logits) * (beside[0] * s[1] + beside[1] * t[1])
        if p.carry_logits is None:
            return found
        found = found + p.x * self.gate_second_derivative(p.carry_logits) * t[2] * s[2]
        return found + self.slope(p.carry_logits) * (tx * s[2] + sx * t[2])
