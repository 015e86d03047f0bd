"""Mistakes in the layers that are handed parts, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .mistake import Mistake
from .norms import standard, wide

Array = np.ndarray

LAYERS: list[Mistake] = []


def layer(name: str, operator: str, what: str) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Enter a layer."""

    def entered(call: Callable[..., Array]) -> Callable[..., Array]:
        LAYERS.append(Mistake(name, operator, what, lambda: call))
        return call

    return entered


def _as(x: Array, value: Any) -> Array:
    return np.asarray(value).astype(x.dtype)


def _activated(x: Array, total: Array, activation: Any) -> Array:
    return _as(x, total) if activation is None else activation(_as(x, total))


@layer("residual-shifted", "residual", "adds 1 to the result")
def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)) + wide(branch(x))
    return _as(x, wide(_activated(x, total, activation)) + 1)


def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)) + wide(branch(x))
    return _as(x, np.maximum(total, 0)) if activation is None else _activated(x, total, activation)


def _(x, branch, *, shortcut=None, activation=None):
    skip = wide(x) if shortcut is None else wide(x) + wide(shortcut(x))
    return _activated(x, skip + wide(branch(x)), activation)


@layer("residual-multiplied", "residual", "multiplies x by one plus the branch")
def _(x, branch, *, shortcut=None, activation=None):
    skip = wide(x if shortcut is None else shortcut(x))
    return _activated(x, skip + wide(x) * wide(branch(x)), activation)


@layer("residual-weighed", "residual", "multiplies the sum by 0.7")
def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)) + wide(branch(x))
    return _activated(x, total * wide(x).dtype.type(0.7), activation)


def _ln(x: Array, gamma: Any, beta: Any, eps: float) -> Array:
    return _as(x, standard(wide(x), gamma, beta, wide(x).dtype.type(eps), (-1,)))


@layer("pre-norm-x-twice", "pre_norm", "adds x twice")
def _(x, sublayer, gamma, beta, *, eps):
    return _as(x, 2 * wide(x) + wide(sublayer(_ln(x, gamma, beta, eps))))


def _(x, sublayer, gamma, beta, *, eps):
    z = _ln(x, gamma, beta, eps)
    return _as(x, wide(z) + wide(sublayer(z)))


@layer("pre-norm-scaled-sublayer", "pre_norm", "multiplies the sublayer by 0.1")
def _(x, sublayer, gamma, beta, *, eps):
    return _as(x, wide(x) + wide(sublayer(_ln(x, gamma, beta, eps))) * wide(x).dtype.type(0.1))


@layer("pre-norm-beta-after", "pre_norm", "adds beta to the result once more")
def _(x, sublayer, gamma, beta, *, eps):
    y = wide(x) + wide(sublayer(_ln(x, gamma, beta, eps)))
    return _as(x, y if beta is None else y + beta)


@layer("post-norm-x-after", "post_norm", "adds x to the normalised sum")
def _(x, sublayer, gamma, beta, *, eps):
    total = wide(x) + wide(sublayer(x))
    return _as(x, standard(total, gamma, beta, total.dtype.type(eps), (-1,)) + total.dtype.type(1) * wide(x))


@layer("post-norm-third-eps", "post_norm", "adds eps / 3 to the variance")
def _(x, sublayer, gamma, beta, *, eps):
    total = wide(x) + wide(sublayer(x))
    return _as(x, standard(total, gamma, beta, total.dtype.type(eps / 3), (-1,)))


@layer("post-norm-median", "post_norm", "subtracts the median")
def _(x, sublayer, gamma, beta, *, eps):
    total = wide(x) + wide(sublayer(x))
    d = total - np.median(total, axis=-1, keepdims=True)
    y = d / np.sqrt(total.var(-1, keepdims=True) + total.dtype.type(eps))
    y = y if gamma is None else y * gamma
    return _as(x, y if beta is None else y + beta)


def _sigmoid(z: Array) -> Array:
    return (0.5 * (1 + np.tanh(0.5 * wide(z)))).astype(wide(z).dtype)


def _gates(x: Array, gate: Any, carry: Any) -> tuple[Array, Array]:
    t = _sigmoid(gate(x))
    return t, 1 - t if carry is None else _sigmoid(carry(x))


@layer("highway-gate-squared", "highway", "multiplies the transform by the gate twice")
def _(x, transform, gate, *, carry=None):
    t, c = _gates(x, gate, carry)
    return _as(x, wide(transform(x)) * t * t + wide(x) * c)


@layer("highway-gate-added", "highway", "adds the gate to the result")
def _(x, transform, gate, *, carry=None):
    t, c = _gates(x, gate, carry)
    return _as(x, wide(transform(x)) * t + wide(x) * c + t)


@layer("highway-transform-again", "highway", "adds the transform once more without its gate")
def _(x, transform, gate, *, carry=None):
    t, c = _gates(x, gate, carry)
    h = wide(transform(x))
    return _as(x, h * t + wide(x) * c + h)


@layer("highway-sharp-gate", "highway", "doubles the gate's logits")
def _(x, transform, gate, *, carry=None):
    t = _sigmoid(2 * wide(gate(x)))
    c = 1 - t if carry is None else _sigmoid(carry(x))
    return _as(x, wide(transform(x)) * t + wide(x) * c)


@layer("highway-half-open", "highway", "shuts gates below one half")
def _(x, transform, gate, *, carry=None):
    t, c = _gates(x, gate, carry)
    return _as(x, wide(transform(x)) * np.where(t < 0.5, 0, t) + wide(x) * c)


def _weights(logits: Array) -> Array:
    z = np.exp(wide(logits) - wide(logits).max())
    return z / z.sum()


def _mixed(x: Array, branches: Any, logits: Any, fuse: Any, weigh: Callable[[Array], Array]) -> Array:
    values = [branch(x) for branch in branches]
    if fuse is not None:
        return wide(fuse(values))
    return sum(w * wide(value) for w, value in zip(weigh(logits), values, strict=True))


@layer("mhc-x-twice", "mhc", "adds x twice")
def _(x, branches, logits, *, fuse=None):
    return _as(x, 2 * wide(x) + _mixed(x, branches, logits, fuse, _weights))


@layer("mhc-sharp-weights", "mhc", "doubles the logits")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, lambda z: _weights(2 * wide(z))))


@layer("mhc-last-branch-again", "mhc", "adds the last branch once more")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, _weights) + wide(branches[-1](x)))


@layer("mhc-half-the-sum", "mhc", "adds half of the weighted sum")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, _weights) / 2)
