"""Mistakes in the layers that take parts, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .mistake import Mistake
from .norms import affine, standard, wide

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


@layer("residual-multiplied", "residual", "multiplies x by one plus the branch")
def _(x, branch, *, shortcut=None, activation=None):
    skip = wide(x if shortcut is None else shortcut(x))
    return _activated(x, skip + wide(x) * wide(branch(x)), activation)


@layer("residual-weighed", "residual", "multiplies the sum by 0.7")
def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)) + wide(branch(x))
    return _activated(x, total * wide(x).dtype.type(0.7), activation)


@layer("residual-sum-by-root-two", "residual", "divides the sum by the root of two")
def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)) + wide(branch(x))
    return _activated(x, total * wide(x).dtype.type(0.5**0.5), activation)


@layer("residual-small-gain", "residual", "multiplies the branch by 0.1, the first value of a LayerScale")
def _(x, branch, *, shortcut=None, activation=None):
    skip = wide(x if shortcut is None else shortcut(x))
    return _activated(x, skip + wide(x).dtype.type(0.1) * wide(branch(x)), activation)


@layer("residual-branch-rectified", "residual", "rectifies the branch before it is added")
def _(x, branch, *, shortcut=None, activation=None):
    skip = wide(x if shortcut is None else shortcut(x))
    return _activated(x, skip + np.maximum(wide(branch(x)), 0), activation)


@layer("residual-activation-twice", "residual", "applies the activation twice")
def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)) + wide(branch(x))
    y = _activated(x, total, activation)
    return y if activation is None else activation(y)


@layer("residual-last-feature-dropped", "residual", "leaves the branch out of the last feature")
def _(x, branch, *, shortcut=None, activation=None):
    total = wide(x if shortcut is None else shortcut(x)).copy()
    total[..., :-1] += wide(branch(x))[..., :-1]
    return _activated(x, total, activation)


def _ln(x: Array, gamma: Any, beta: Any, eps: float) -> Array:
    return _as(x, standard(wide(x), gamma, beta, wide(x).dtype.type(eps), (-1,)))


@layer("pre-norm-x-twice", "pre_norm", "adds x twice")
def _(x, sublayer, gamma, beta, *, eps):
    return _as(x, 2 * wide(x) + wide(sublayer(_ln(x, gamma, beta, eps))))


@layer("pre-norm-scaled-sublayer", "pre_norm", "multiplies the sublayer by 0.1")
def _(x, sublayer, gamma, beta, *, eps):
    return _as(x, wide(x) + wide(sublayer(_ln(x, gamma, beta, eps))) * wide(x).dtype.type(0.1))


@layer("pre-norm-beta-after", "pre_norm", "adds beta to the result once more")
def _(x, sublayer, gamma, beta, *, eps):
    y = wide(x) + wide(sublayer(_ln(x, gamma, beta, eps)))
    return _as(x, y if beta is None else y + beta)


@layer("pre-norm-quarter-eps", "pre_norm", "adds eps / 4 to the variance")
def _(x, sublayer, gamma, beta, *, eps):
    return _as(x, wide(x) + wide(sublayer(_ln(x, gamma, beta, eps / 4))))


@layer("pre-norm-median", "pre_norm", "subtracts the median")
def _(x, sublayer, gamma, beta, *, eps):
    w = wide(x)
    d = w - np.median(w, axis=-1, keepdims=True)
    z = affine(d / np.sqrt(w.var(-1, keepdims=True) + w.dtype.type(eps)), gamma, beta)
    return _as(x, w + wide(sublayer(_as(x, z))))


@layer("pre-norm-gamma-squared", "pre_norm", "multiplies by gamma twice")
def _(x, sublayer, gamma, beta, *, eps):
    squared = None if gamma is None else gamma * gamma
    return _as(x, wide(x) + wide(sublayer(_ln(x, squared, beta, eps))))


@layer("pre-norm-first-row-raw", "pre_norm", "hands the first row to the sublayer as it is")
def _(x, sublayer, gamma, beta, *, eps):
    z = _ln(x, gamma, beta, eps)
    z.reshape(-1, x.shape[-1])[:1] = x.reshape(-1, x.shape[-1])[:1]
    return _as(x, wide(x) + wide(sublayer(z)))


@layer("post-norm-x-doubled", "post_norm", "normalises 2 x + F(x), as DeepNorm does with its constant")
def _(x, sublayer, gamma, beta, *, eps):
    total = 2 * wide(x) + wide(sublayer(x))
    return _as(x, standard(total, gamma, beta, total.dtype.type(eps), (-1,)))


@layer("post-norm-three-quarters", "post_norm", "multiplies the sublayer by 3/4 before the sum is normalised")
def _(x, sublayer, gamma, beta, *, eps):
    total = wide(x) + wide(x).dtype.type(0.75) * wide(sublayer(x))
    return _as(x, standard(total, gamma, beta, total.dtype.type(eps), (-1,)))


@layer("post-norm-twice", "post_norm", "normalises the result again, without gamma and beta")
def _(x, sublayer, gamma, beta, *, eps):
    total = wide(x) + wide(sublayer(x))
    e = total.dtype.type(eps)
    return _as(x, standard(standard(total, gamma, beta, e, (-1,)), None, None, e, (-1,)))


@layer("post-norm-gamma-rolled", "post_norm", "reads gamma from the second value on, and the first one last")
def _(x, sublayer, gamma, beta, *, eps):
    total = wide(x) + wide(sublayer(x))
    return _as(x, standard(total, None if gamma is None else np.roll(gamma, -1), beta, total.dtype.type(eps), (-1,)))


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


@layer("highway-nine-tenths", "highway", "multiplies the gate by 0.9")
def _(x, transform, gate, *, carry=None):
    t = _sigmoid(gate(x)) * wide(x).dtype.type(0.9)
    c = 1 - t if carry is None else _sigmoid(carry(x))
    return _as(x, wide(transform(x)) * t + wide(x) * c)


@layer("highway-temperature", "highway", "divides the gate's logits by 1.5")
def _(x, transform, gate, *, carry=None):
    t = _sigmoid(wide(gate(x)) / wide(x).dtype.type(1.5))
    c = 1 - t if carry is None else _sigmoid(carry(x))
    return _as(x, wide(transform(x)) * t + wide(x) * c)


@layer("highway-softmax-of-two", "highway", "takes exp(z) / (exp(z) + 1) for the gate: NaN for large logits")
def _(x, transform, gate, *, carry=None):
    e = np.exp(wide(gate(x)))
    t = e / (e + 1)
    c = 1 - t if carry is None else _sigmoid(carry(x))
    return _as(x, wide(transform(x)) * t + wide(x) * c)


@layer("highway-carry-of-the-square", "highway", "carries x by 1 - t^2")
def _(x, transform, gate, *, carry=None):
    t = _sigmoid(gate(x))
    c = 1 - t * t if carry is None else _sigmoid(carry(x))
    return _as(x, wide(transform(x)) * t + wide(x) * c)


@layer("highway-mean-gate", "highway", "uses the mean gate of a row")
def _(x, transform, gate, *, carry=None):
    t = np.broadcast_to(_sigmoid(gate(x)).mean(-1, keepdims=True), x.shape)
    c = 1 - t if carry is None else _sigmoid(carry(x))
    return _as(x, wide(transform(x)) * t + wide(x) * c)


@layer("highway-carry-halved", "highway", "halves a carry gate of its own")
def _(x, transform, gate, *, carry=None):
    t, c = _gates(x, gate, carry)
    return _as(x, wide(transform(x)) * t + wide(x) * (c if carry is None else c / 2))


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


@layer("mhc-temperature", "mhc", "divides the logits by 3")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, lambda z: _weights(wide(z) / 3)))


@layer("mhc-roots-of-weights", "mhc", "weighs each branch by the root of its weight")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, lambda z: np.sqrt(_weights(z))))


@layer("mhc-logits-rectified", "mhc", "takes negative logits for zero")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, lambda z: _weights(np.maximum(wide(z), 0))))


@layer("mhc-first-whole", "mhc", "adds the first branch with the weight 1")
def _(x, branches, logits, *, fuse=None):
    def weigh(z):
        w = _weights(z)
        w[:1] = 1
        return w

    return _as(x, wide(x) + _mixed(x, branches, logits, fuse, weigh))


@layer("mhc-three-at-most", "mhc", "leaves out every branch after the third")
def _(x, branches, logits, *, fuse=None):
    return _as(x, wide(x) + _mixed(x, branches[:3], logits[:3] if fuse is None else logits, fuse, _weights))
