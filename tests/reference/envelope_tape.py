"""A tape of primitive operations on rows that can be differentiated again: how frameworks compose derivatives.

Every operation rounds in the dtype of its operands, and so does every operation of a derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray


class Node:
    """A matrix on the tape, and how its gradient becomes gradients of the matrices it was made from."""

    def __init__(self, value: Array, parents: Sequence[tuple[Node, Callable[[Node], Node]]] = ()) -> None:
        self.value, self.parents = value, parents

    def __add__(self, other: Node) -> Node:
        return Node(
            self.value + other.value,
            ((self, lambda g: reduced(g, self)), (other, lambda g: reduced(g, other))),
        )

    def __neg__(self) -> Node:
        return Node(-self.value, ((self, lambda g: -g),))

    def __sub__(self, other: Node) -> Node:
        return self + -other

    def __mul__(self, other: Node) -> Node:
        return Node(
            self.value * other.value,
            ((self, lambda g: reduced(g * other, self)), (other, lambda g: reduced(g * self, other))),
        )

    def reciprocal_root(self) -> Node:
        """1/sqrt, with the derivative -(1/sqrt)^3 / 2."""
        root = Node(self.value.dtype.type(1) / np.sqrt(self.value))
        half = constant(-0.5, self)
        root.parents = ((self, lambda g: g * (half * (root * root * root))),)
        return root

    def row_sum(self) -> Node:
        """The sum of each row, as a column."""
        ones = Node(np.ones_like(self.value))
        return Node(self.value.sum(axis=1, keepdims=True), ((self, lambda g: g * ones),))

    def column_sum(self) -> Node:
        """The sum of each column, as a row."""
        ones = Node(np.ones_like(self.value))
        return Node(self.value.sum(axis=0, keepdims=True), ((self, lambda g: g * ones),))

    def mean(self) -> Node:
        """The mean of each row, as a column."""
        return self.row_sum() * constant(1 / self.value.shape[1], self)


def constant(value: float, like: Node) -> Node:
    """A number on the tape, in the dtype of a node."""
    return Node(np.full((1, 1), value, like.value.dtype))


def reduced(gradient: Node, like: Node) -> Node:
    """A gradient summed over the axes along which its value was broadcast."""
    if gradient.value.shape[0] > like.value.shape[0]:
        gradient = gradient.column_sum()
    return gradient.row_sum() if gradient.value.shape[1] > like.value.shape[1] else gradient


def gradients(output: Node, seed: Node, inputs: Sequence[Node]) -> list[Node]:
    """Reverse mode: the gradients of <output, seed>, themselves on the tape."""
    order: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for parent, _ in node.parents:
                visit(parent)
            order.append(node)

    visit(output)
    found = {id(output): seed}
    for node in reversed(order):
        if id(node) in found:
            for parent, pull in node.parents:
                part = pull(found[id(node)])
                found[id(parent)] = found[id(parent)] + part if id(parent) in found else part
    zero = lambda node: Node(np.zeros_like(node.value))  # noqa: E731
    return [found.get(id(node)) or zero(node) for node in inputs]


def two_pass(x: Node, eps: float) -> Node:
    """xhat = (x - mean) / sqrt(mean((x - mean)^2) + eps)."""
    d = x - x.mean()
    return d * ((d * d).mean() + constant(eps, x)).reciprocal_root()


def folded(x: Node, eps: float) -> Node:
    """xhat = x r - mean r, the variance from two passes."""
    mean = x.mean()
    d = x - mean
    r = ((d * d).mean() + constant(eps, x)).reciprocal_root()
    return x * r - mean * r


def layer_norm(xhat: Callable[[Node, float], Node], x: Node, gamma: Node, beta: Node, eps: float) -> Node:
    """Layer normalisation of the rows on the tape."""
    return xhat(x, eps) * gamma + beta
