"""A tape of floating-point tensors that rounds every step in the dtype of each: how sound code differentiates.

Derivatives are built of the same operations, so that they can be differentiated again. Sums are taken in an order that
is drawn. bfloat16 and float16 round in NumPy after each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


class Node:
    """A tensor, and how its gradient becomes the gradients of the tensors it was made from."""

    def __init__(self, value: Array, parents: Sequence[tuple[Node, Callable[[Node], Node]]] = ()) -> None:
        self.value, self.parents = value, parents

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def like(self, number: float) -> Node:
        """A constant of this dtype."""
        return Node(np.asarray(number, dtype=self.value.dtype))

    def __add__(self, other: Node) -> Node:
        return Node(
            self.value + other.value, ((self, lambda g: reduced(g, self)), (other, lambda g: reduced(g, other)))
        )

    def __sub__(self, other: Node) -> Node:
        parents = ((self, lambda g: reduced(g, self)), (other, lambda g: -reduced(g, other)))
        return Node(self.value - other.value, parents)

    def __neg__(self) -> Node:
        return Node(-self.value, ((self, lambda g: -g),))

    def __mul__(self, other: Node) -> Node:
        parents = ((self, lambda g: reduced(g * other, self)), (other, lambda g: reduced(g * self, other)))
        return Node(self.value * other.value, parents)

    def __truediv__(self, other: Node) -> Node:
        def below(g: Node) -> Node:
            return reduced(-(g * quotient) / other, other)

        quotient = Node(self.value / other.value)
        quotient.parents = ((self, lambda g: reduced(g / other, self)), (other, below))
        return quotient

    def exp(self) -> Node:
        """The exponential; in NumPy, with ml_dtypes for bfloat16."""
        result = Node(np.exp(self.value))
        result.parents = ((self, lambda g: g * result),)
        return result

    def log(self) -> Node:
        """The logarithm."""
        return Node(np.log(self.value), ((self, lambda g: g / self),))

    def tanh(self) -> Node:
        """tanh with the derivative 1 - t^2."""
        result = Node(np.tanh(self.value))
        result.parents = ((self, lambda g: g * (result.like(1) - result * result)),)
        return result

    def sigmoid(self) -> Node:
        """The logistic function as a framework's own operation: g t (1 - t)."""
        small = np.exp(-np.abs(self.value))
        one = self.value.dtype.type(1)
        result = Node(np.where(self.value >= 0, one / (one + small), small / (one + small)).astype(self.value.dtype))
        result.parents = ((self, lambda g: g * (result.like(1) - result) * result),)
        return result

    def reciprocal_root(self) -> Node:
        """1/sqrt, with the derivative -r^3/2."""
        result = Node(self.value.dtype.type(1) / np.sqrt(self.value))
        result.parents = ((self, lambda g: g * (result.like(-0.5) * (result * result * result))),)
        return result

    def cast(self, dtype: Any) -> Node:
        """The tensor in another dtype; its gradient comes back in this one."""
        if self.value.dtype == dtype:
            return self
        before = self.value.dtype
        return Node(self.value.astype(dtype), ((self, lambda g: g.cast(before)),))

    def moved(self, move: Callable[[Array], Array], back: Callable[[Node], Node]) -> Node:
        """Elements elsewhere; `back` is the transposed map."""
        return Node(move(self.value), ((self, back),))

    def sum(self, axis: int) -> Node:
        """The sum along one axis, kept with length 1."""
        count = self.shape[axis]
        return Node(added(self.value, axis), ((self, lambda g: g.repeated(axis, count)),))

    def repeated(self, axis: int, count: int) -> Node:
        """Repeated along an axis of length 1."""
        return self.moved(lambda z: np.repeat(z, count, axis=axis), lambda g: g.sum(axis))

    def mean(self) -> Node:
        """The mean along the last axis: the sum, divided."""
        return self.sum(-1) / self.like(self.shape[-1])

    def reshaped(self, *shape: int) -> Node:
        """The same elements in another shape."""
        before = self.shape
        return self.moved(lambda z: z.reshape(shape), lambda g: g.reshaped(*before))

    def element(self, k: int) -> Node:
        """Element k along the first axis."""
        count = self.shape[0]
        return self.moved(lambda z: z[k], lambda g: g.as_element(k, count))

    def as_element(self, k: int, count: int) -> Node:
        """Element k among zeros."""

        def move(z: Array) -> Array:
            result = np.zeros((count, *z.shape), z.dtype)
            result[k] = z
            return result

        return self.moved(move, lambda g: g.element(k))

    def shifted(self, offset: int) -> Node:
        """result[t] = z[t + offset] along the second last axis, zero beyond."""

        def move(z: Array) -> Array:
            result, n = np.zeros_like(z), z.shape[-2]
            for t in range(n):
                if 0 <= t + offset < n:
                    result[..., t, :] = z[..., t + offset, :]
            return result

        return self.moved(move, lambda g: g.shifted(-offset))

    def linear(self, w: Node) -> Node:
        """x @ w over the last axis."""
        n, m = w.shape
        products = self.reshaped(-1, n, 1) * w.reshaped(1, n, m)
        return products.sum(1).reshaped(*self.shape[:-1], m)


#: The order in which sums are taken: "forwards", "backwards" or "pairs".
ORDER = ["forwards"]


def added(z: Array, axis: int) -> Array:
    """The sum along an axis, kept, in the order that is set."""
    terms = [np.take(z, [k], axis=axis) for k in range(z.shape[axis])]
    if ORDER[0] == "backwards":
        terms = terms[::-1]
    while ORDER[0] == "pairs" and len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def reduced(g: Node, like: Node) -> Node:
    """A gradient summed over the axes along which its value was broadcast."""
    while len(g.shape) > len(like.shape):
        g = g.sum(0)
        g = g.reshaped(*g.shape[1:])
    for axis, n in enumerate(like.shape):
        if n == 1 and g.shape[axis] > 1:
            g = g.sum(axis)
    return g


def gradients(outputs: Sequence[tuple[Node, Node]], inputs: Sequence[Node]) -> list[Node]:
    """Reverse mode: the gradients of the sum of <output, seed>, on the tape themselves."""
    order: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for parent, _ in node.parents:
                visit(parent)
            order.append(node)

    found: dict[int, Node] = {}
    for output, seed in outputs:
        visit(output)
        found[id(output)] = found[id(output)] + seed if id(output) in found else seed
    for node in reversed(order):
        if id(node) in found:
            for parent, pull in node.parents:
                term = pull(found[id(node)])
                found[id(parent)] = found[id(parent)] + term if id(parent) in found else term
    return [found.get(id(node)) or Node(np.zeros_like(node.value)) for node in inputs]
