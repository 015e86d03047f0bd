"""
Exact products of a Hessian and a vector: the derivative of the gradient along the vector.

A step here takes x with a tangent and returns y with its tangent; its pullback takes a cotangent with *its* tangent.
A tangent is how far a value moves along the vector, so the tangent of the gradient is the Hessian times the vector.
Source: Pearlmutter, "Fast Exact Multiplication by the Hessian" (1994), Neural Computation 6(1), section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from .operators import Operators
from .result import Array, Result
from .steps import Activation, transposed

#: A value and its tangent.
Moving = tuple[Array, Array]


@attrs.frozen(eq=False)
class Moved:
    """A step's result, and the way back: from the cotangent of y to the gradients by name, with their tangents."""

    y: Moving
    pull: Callable[[Moving], dict[str, Moving]]


#: A step of a model, along a direction of its parameters.
MovingStep = Callable[[Moving], Moved]


def linear(w: Moving, name: str) -> MovingStep:
    """x @ w over the last axis; w of shape (seeds, width, width after it)."""
    at, tw = w

    def step(moving: Moving) -> Moved:
        x, tx = moving

        def pull(cotangent: Moving) -> dict[str, Moving]:
            g, tg = cotangent
            back, again = transposed(at), transposed(x)
            return {
                "x": (g @ back, tg @ back + g @ transposed(tw)),
                name: (again @ g, again @ tg + transposed(tx) @ g),
            }

        return Moved((x @ at, tx @ at + x @ tw), pull)

    return step


def activated(activation: Activation, bend: Callable[[Array], Array]) -> MovingStep:
    """An activation, element by element; ``bend`` is its second derivative."""

    def step(moving: Moving) -> Moved:
        x, tx = moving
        y, slope = activation(x)
        curved = bend(x) * tx

        def pull(cotangent: Moving) -> dict[str, Moving]:
            g, tg = cotangent
            return {"x": (g * slope, tg * slope + g * curved)}

        return Moved((y, slope * tx), pull)

    return step


def layer_norm(operators: Operators, eps: float) -> MovingStep:
    """
    The target's LayerNorm over the last axis, with its own derivatives: forward mode, and the derivative of its
    gradient.

    For a fixed g the gradient is that of sum(y g). Its derivative along tx is a Hessian times tx; because a Hessian is
    symmetric, the vector-Jacobian product of the gradient has the same value. Raises Unsupported if the target lacks
    these derivatives.
    """
    settings = {"eps": eps, "axes": (-1,)}

    def step(moving: Moving) -> Moved:
        x, tx = moving
        session = operators.session("layer_norm", x.shape, settings)
        inputs, tangents = {"x": x, "gamma": None, "beta": None}, {"x": tx}
        result = operators.layer_norm(x, eps=eps)

        def pull(cotangent: Moving) -> dict[str, Moving]:
            g, tg = cotangent
            # The gradient is linear in g: its tangent is the tangent for a fixed g plus the gradient for tg.
            bent = session.vjp_vjp(inputs, settings, g, tangents)["x"]
            assert bent is not None
            return {"x": (result.pull(g)["x"], bent + result.pull(tg)["x"])}

        return Moved((result.y, session.jvp(inputs, settings, tangents)), pull)

    return step


def residual(operators: Operators, branch: MovingStep) -> MovingStep:
    """The target's residual connection. It is linear, so its tangent is the same sum of tangents."""

    def step(moving: Moving) -> Moved:
        x, tx = moving
        inner = branch(moving)
        handed: dict[str, Array] = {}
        found: dict[str, Moving] = {}

        def first(_: Array) -> Result:
            def pull(g: Array) -> dict[str, Array]:
                handed["g"] = g
                return {"x": np.zeros_like(x)}

            return Result(inner.y[0], pull)

        def second(_: Array) -> Result:
            def pull(tg: Array) -> dict[str, Array]:
                found.update(inner.pull((handed["g"], tg)))
                return {"x": np.zeros_like(x)}

            return Result(inner.y[1], pull)

        value, tangent = operators.residual(x, first), operators.residual(tx, second)

        def pull(cotangent: Moving) -> dict[str, Moving]:
            # The gradient around the branch comes from the target; the gradient through the branch is added.
            around = value.pull(cotangent[0])["x"], tangent.pull(cotangent[1])["x"]
            through = found.pop("x")
            return {"x": (around[0] + through[0], around[1] + through[1]), **found}

        return Moved((value.y, tangent.y), pull)

    return step


def joined(steps: Sequence[MovingStep]) -> MovingStep:
    """Several steps as one; the names of their parameters must differ."""

    def step(moving: Moving) -> Moved:
        results: list[Moved] = []
        for one in steps:
            results.append(one(results[-1].y if results else moving))

        def pull(cotangent: Moving) -> dict[str, Moving]:
            found: dict[str, Moving] = {}
            for result in reversed(results):
                gradients = result.pull(cotangent)
                cotangent = gradients.pop("x")
                found |= gradients
            return {"x": cotangent, **found}

        return Moved(results[-1].y, pull)

    return step


#: An array for each parameter, (seeds, ...): a direction, or a gradient.
Direction = Mapping[str, Array]


def dot(a: Direction, b: Direction) -> Array:
    """The inner product for each seed, (seeds,)."""
    return sum((a[name] * b[name]).sum(axis=tuple(range(1, b[name].ndim))) for name in a)  # type: ignore[return-value]


def along(direction: Direction, factor: Array) -> dict[str, Array]:
    """The direction times one number per seed."""
    return {name: one * factor.reshape(-1, *[1] * (one.ndim - 1)) for name, one in direction.items()}


def largest_eigenvalue(
    product: Callable[[Direction], Direction], start: Direction, count: int
) -> tuple[Array, dict[str, Array]]:
    """
    The largest eigenvalue of each seed's Hessian and its vector, by Lanczos's method; NaN where it is not finite.

    ``product`` multiplies the Hessian by a vector. Every new vector is made orthogonal to all earlier ones, twice, so
    that rounding does not bring a direction back. Source: Golub and Van Loan, "Matrix Computations", section 10.1.
    """
    basis: list[dict[str, Array]] = [along(start, 1 / np.sqrt(dot(start, start)))]
    images: list[Direction] = []
    for _ in range(count):
        images.append(product(basis[-1]))
        new = dict(images[-1])
        for _ in range(2):
            for one in basis:
                overlap = along(one, dot(one, new))
                new = {name: new[name] - overlap[name] for name in new}
        length = np.sqrt(dot(new, new))
        basis.append(along(new, 1 / np.where(length > 0, length, 1.0)))
    small = np.array([[dot(a, b) for b in images] for a in basis[:-1]])  # (count, count, seeds)
    small = np.moveaxis((small + np.swapaxes(small, 0, 1)) / 2, -1, 0)
    finite = np.asarray(np.isfinite(small).all(axis=(1, 2)))  # a net that returns NaN has no eigenvalue
    values, vectors = np.linalg.eigh(np.where(finite[:, None, None], small, 0.0))
    largest, weights = np.where(finite, values[:, -1], np.nan), vectors[:, :, -1]
    vector = {name: np.zeros_like(one) for name, one in start.items()}
    for k, one in enumerate(basis[:-1]):
        part = along(one, weights[:, k])
        vector = {name: vector[name] + part[name] for name in vector}
    return largest, vector
