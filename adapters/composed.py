"""
The composed operators in plain arithmetic, which reads the same on the tensors of any framework with operators.

What differs from framework to framework is handed in: its LayerNorm, its sigmoid, and how it weighs branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def residual(x, branch, *, shortcut=None, activation=None):
    """The residual connection in the canonical signature."""
    y = branch(x) + (x if shortcut is None else shortcut(x))
    return y if activation is None else activation(y)


def pre_norm(layer_norm: Callable[..., Any]) -> Callable[..., Any]:
    """The pre-norm block around a LayerNorm; the block's settings are handed to it."""

    def pre_norm(x, sublayer, gamma, beta, **settings):
        return x + sublayer(layer_norm(x, gamma, beta, axes=(-1,), **settings))

    return pre_norm


def post_norm(layer_norm: Callable[..., Any]) -> Callable[..., Any]:
    """The post-norm block around a LayerNorm; the block's settings are handed to it."""

    def post_norm(x, sublayer, gamma, beta, **settings):
        return layer_norm(x + sublayer(x), gamma, beta, axes=(-1,), **settings)

    return post_norm


def highway(sigmoid: Callable[[Any], Any]) -> Callable[..., Any]:
    """The highway layer with gates by this function."""

    def highway(x, transform, gate, *, carry=None):
        t = sigmoid(gate(x))
        c = 1 - t if carry is None else sigmoid(carry(x))
        return transform(x) * t + x * c

    return highway


def mhc(weighted: Callable[[Any, Any, list[Any]], Any]) -> Callable[..., Any]:
    """The multi-scale highway layer; without ``fuse``, y is weighted(x, logits, the branches' outputs)."""

    def mhc(x, branches, logits, *, fuse=None):
        outputs = [branch(x) for branch in branches]
        return weighted(x, logits, outputs) if fuse is None else x + fuse(outputs)

    return mhc
