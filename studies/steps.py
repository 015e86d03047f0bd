"""
The steps of a model other than the operators: linear maps, feed-forward and attention branches, gains.

The first axis of every array is seeds, so that one call runs all seeds: x is (seeds, samples, width), or (seeds,
samples, positions, width) for attention, and a weight is (seeds, width, width). A step returns the gradients of its
parameters under their names.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .result import Array, Chain, Result, Step

#: An activation: maps x to its value and its derivative there.
Activation = Callable[[Array], tuple[Array, Array]]


def relu(x: Array) -> tuple[Array, Array]:
    """max(x, 0)."""
    return np.maximum(x, 0), (x > 0).astype(x.dtype)


def tanh(x: Array) -> tuple[Array, Array]:
    """tanh(x)."""
    y = np.tanh(x)
    return y, 1 - y * y


def transposed(w: Array) -> Array:
    """The matrices of w, each transposed."""
    return np.swapaxes(w, -1, -2)


def linear(w: Array, name: str = "w") -> Step:
    """x @ w over the last axis; w of shape (seeds, width, width after it)."""

    def rows(x: Array) -> Array:
        return x.reshape(len(x), -1, x.shape[-1])  # one matrix product per seed

    def step(x: Array) -> Result:
        def pull(g: Array) -> dict[str, Array]:
            return {"x": (rows(g) @ transposed(w)).reshape(x.shape), name: transposed(rows(x)) @ rows(g)}

        return Result((rows(x) @ w).reshape(*x.shape[:-1], w.shape[-1]), pull)

    return step


def activated(activation: Activation) -> Step:
    """An activation, element by element."""

    def step(x: Array) -> Result:
        y, slope = activation(x)
        return Result(y, lambda g: {"x": g * slope})

    return step


def joined(*steps: Step) -> Step:
    """Several steps as one; the names of their parameters must differ."""

    def step(x: Array) -> Result:
        chain = Chain.of(x, steps)

        def pull(g: Array) -> dict[str, Array]:
            back = chain.pull(g)
            found = {name: one for each in back.parameters for name, one in each.items()}
            return {"x": back.cotangents[0], **found}

        return Result(chain.y, pull)

    return step


def scaled(factor: float, inner: Step) -> Step:
    """A constant times another step's result."""

    def step(x: Array) -> Result:
        result = inner(x)
        return Result(factor * result.y, lambda g: result.pull(factor * g))

    return step


def feed_forward(w1: Array, w2: Array, activation: Activation) -> Step:
    """activation(x @ w1) @ w2: the branch of two layers of a residual network or a transformer."""
    return joined(linear(w1, "w1"), activated(activation), linear(w2, "w2"))


def attention(wq: Array, wk: Array, wv: Array, wo: Array) -> Step:
    """
    Self-attention with one head: softmax(q k^T / sqrt(width)) v @ wo over the positions of each sample.

    Source: Vaswani et al., "Attention Is All You Need" (2017), arXiv:1706.03762, section 3.2.1.
    """

    def step(x: Array) -> Result:
        q, k, v = (linear(w, name)(x) for w, name in ((wq, "wq"), (wk, "wk"), (wv, "wv")))
        root = np.sqrt(x.shape[-1])
        scores = q.y @ transposed(k.y) / root
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        out = linear(wo, "wo")(weights @ v.y)

        def pull(g: Array) -> dict[str, Array]:
            outer = out.pull(g)
            mixed = outer.pop("x")
            of_weights = mixed @ transposed(v.y)
            of_scores = weights * (of_weights - (of_weights * weights).sum(axis=-1, keepdims=True)) / root
            found = {"x": np.zeros_like(x), **outer}
            for result, cotangent in (
                (q, of_scores @ k.y),
                (k, transposed(of_scores) @ q.y),
                (v, transposed(weights) @ mixed),
            ):
                gradients = result.pull(cotangent)
                found["x"] = found["x"] + gradients.pop("x")
                found |= gradients
            return found

        return Result(out.y, pull)

    return step


def norm(x: Array) -> Array:
    """The Euclidean norm for each seed: an array with one number per seed."""
    return np.sqrt(np.sum(np.square(x), axis=tuple(range(1, x.ndim))))
