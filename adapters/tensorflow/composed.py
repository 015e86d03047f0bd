"""
The composed operators, written with TensorFlow's functions as users write them: it ships no layers of these names.

There are no checks beyond TensorFlow's own: a branch's result that can be broadcast to x's shape is broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..binding import Binding
from ..known import KnownViolation
from .moments import CONVENTIONS, REASONS, SOURCE, layer_norm, second_order_violations

#: Why highway and mhc round every operation.
_EACH_ROUNDED = (
    "each operation on 16-bit tensors rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {SOURCE}core/kernels/cwise_ops.h"
)

#: Why a result of another shape is accepted if it can be broadcast.
BROADCAST = (
    KnownViolation(
        "CM-C6",
        "addition and multiplication broadcast without a word",
        links=("https://www.tensorflow.org/api_docs/python/tf/math/add",),
        failures=("accepts",),
    ),
)


def _residual(x, branch, *, shortcut=None, activation=None):
    y = branch(x) + (x if shortcut is None else shortcut(x))
    return y if activation is None else activation(y)


def _pre_norm(x, sublayer, gamma, beta, *, eps):
    return x + sublayer(layer_norm(x, gamma, beta, eps=eps, axes=(-1,)))


def _post_norm(x, sublayer, gamma, beta, *, eps):
    return layer_norm(x + sublayer(x), gamma, beta, eps=eps, axes=(-1,))


def _highway(x, transform, gate, *, carry=None):
    t = tf.sigmoid(gate(x))
    c = 1 - t if carry is None else tf.sigmoid(carry(x))
    return transform(x) * t + x * c


def _mhc(x, branches, logits, *, fuse=None):
    outputs = [branch(x) for branch in branches]
    if fuse is not None:
        return x + fuse(outputs)
    weights = tf.unstack(tf.cast(tf.nn.softmax(logits), x.dtype), num=len(outputs))
    return x + tf.add_n([weight * output for weight, output in zip(weights, outputs)])


def _block(operator: str, name: str, call: Callable[..., Any], *derivatives: str) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions=CONVENTIONS,
        reasons=REASONS,
        known_violations=(*BROADCAST, *second_order_violations(*derivatives)),
    )


def _native(
    operator: str, name: str, call: Callable[..., Any], known_violations: tuple[KnownViolation, ...] = BROADCAST
) -> Binding:
    return Binding(
        operator,
        name,
        call,
        conventions={"storage": "native"},
        reasons={"storage": _EACH_ROUNDED},
        known_violations=known_violations,
    )


BINDINGS: tuple[Binding, ...] = (
    Binding(
        "residual",
        "tf x + branch(x)",
        _residual,
        known_violations=BROADCAST,
    ),
    _block(
        "pre_norm",
        "tf x + sublayer(batch_normalization(x, *moments(x)))",
        _pre_norm,
        *("PR-G6", "PR-G8", "PR-G9", "PR-G10"),
    ),
    _block(
        "post_norm",
        "tf batch_normalization(y, *moments(y)), y = x + sublayer(x)",
        _post_norm,
        *("PO-G6", "PO-G8", "PO-G9", "PO-G10"),
    ),
    _native("highway", "tf H * t + x * (1 - t), t = tf.sigmoid", _highway),
    _native("mhc", "tf x + add_n(softmax(logits)[k] * H[k])", _mhc, ()),
)
