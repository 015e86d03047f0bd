"""
The composed operators, written with JAX's functions as users write them: JAX ships no layers of these names.

There are no checks beyond JAX's own: a branch's result that can be broadcast to x's shape is broadcast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ..binding import Binding
from ..known import ONE_OF, KnownViolation
from .layers import BROADCAST, FAST_CONVENTIONS, FAST_REASONS, SOURCE, layer_norm

_NATIVE = {"storage": "native"}

#: Why the other operators round every operation.
_EACH_ROUNDED = {
    "storage": (
        "each operation on 16-bit arrays rounds its result to 16 bits: the gate or the weights, every product and"
        f" every sum; {SOURCE}jax/_src/nn/functions.py"
    ),
}

#: Why a result of another shape is accepted if it can be broadcast.
ADDED = (
    KnownViolation(
        "CM-C6",
        "addition and multiplication broadcast as NumPy's do",
        links=("https://numpy.org/doc/stable/user/basics.broadcasting.html",),
        failures=("accepts",),
    ),
)

#: The broadcasting that the weighted sum accepts; branches of another shape cannot be stacked.
ONE_LOGIT = (replace(BROADCAST[0], reason="a weight of one element is broadcast by einsum", notes=(ONE_OF["logits"],)),)

_layer_norm = layer_norm("fast")


def _residual(x, branch, *, shortcut=None, activation=None):
    y = branch(x) + (x if shortcut is None else shortcut(x))
    return y if activation is None else activation(y)


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return x + sublayer(_layer_norm(x, gamma, beta, axes=-1, eps=eps))


def _post_norm(x, sublayer, gamma, beta, *, eps):
    return _layer_norm(x + sublayer(x), gamma, beta, axes=-1, eps=eps)


def _highway(x, transform, gate, *, carry=None):
    t = jax.nn.sigmoid(gate(x))
    c = 1 - t if carry is None else jax.nn.sigmoid(carry(x))
    return transform(x) * t + x * c


def _mhc(x, branches, logits, *, fuse=None):
    outputs = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(outputs)
    return (x + jnp.einsum("k,k...->...", jax.nn.softmax(logits), jnp.stack(outputs))).astype(x.dtype)


def _block(operator: str, name: str, call: Any) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions=FAST_CONVENTIONS,
        reasons=FAST_REASONS,
        known_violations=(*BROADCAST, *ADDED),
    )


BINDINGS: tuple[Binding, ...] = (
    Binding("residual", "jax x + branch(x)", _residual, known_violations=ADDED),
    _block("pre_norm", "jax x + sublayer(jax.nn.standardize(x))", _pre_norm),
    _block("post_norm", "jax jax.nn.standardize(x + sublayer(x))", _post_norm),
    Binding(
        "highway",
        "jax H * t + x * (1 - t)",
        _highway,
        conventions=_NATIVE,
        reasons=_EACH_ROUNDED,
        known_violations=ADDED,
    ),
    Binding(
        "mhc",
        "jax x + einsum(softmax(logits), stack(H))",
        _mhc,
        conventions=_NATIVE,
        reasons=_EACH_ROUNDED,
        known_violations=ONE_LOGIT,
    ),
)
