"""The operations of parts on TensorFlow tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

tanh, relu = tf.tanh, tf.nn.relu


def zeros(x: Any) -> Any:
    """Zeros like x, in x's graph as any sublayer's result is: some code refuses a result that carries no gradient."""
    return tf.where(False, x, tf.zeros_like(x))


def matmul(x: Any, w: Any) -> Any:
    """x @ w over the last axis of x; tf.matmul refuses an x of one axis."""
    return tf.tensordot(x, w, 1)


def shift(x: Any, offset: int, axis: int) -> Any:
    """result[t] = x[t + offset] along the axis, zero beyond the ends; works also if the shape is not known yet."""
    size = x.shape[axis]
    lost = abs(offset) if size is None else min(abs(offset), size)
    if lost == 0:
        return x
    if size is None:
        size = tf.shape(x)[axis]
        lost = tf.minimum(lost, size)
    if offset > 0:
        return tf.concat([_cut(x, lost, size, axis), _beyond(x, lost, axis)], axis)
    return tf.concat([_beyond(x, lost, axis), _cut(x, 0, size - lost, axis)], axis)


def _cut(x: Any, start: Any, stop: Any, axis: int) -> Any:
    cut = [slice(None)] * len(x.shape)
    cut[axis] = slice(start, stop)
    return x[tuple(cut)]


def _beyond(x: Any, lost: Any, axis: int) -> Any:
    return tf.zeros_like(_cut(x, 0, lost, axis))


@tf.custom_gradient
def replay(x: Any, value: Any, cotangent: Any) -> Any:
    """A function of x that returns the value; the cotangent of x is the given one, whatever the value's is."""

    def pulled(g: Any) -> tuple[Any, Any, Any]:
        return tf.identity(cotangent), g, tf.zeros_like(cotangent)

    return tf.identity(value), pulled
