"""Helpers on TensorFlow tensors for scripts without normspec; conformance/reproduce copies their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


def tensor(values: str, dtype: str, shape: tuple[int, ...], device: str = "cpu") -> Any:
    """A tensor of these numbers, in hexadecimal."""
    given = np.array([float.fromhex(one) for one in values.split()], tf.as_dtype(dtype).as_numpy_dtype)
    with tf.device(device):
        return tf.constant(given.reshape(shape))


def numbers(value: Any) -> Any:
    """A copy of the present values, in float64."""
    return np.array(value).astype(np.float64)


def differentiated(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """y = call(*tensors), and the function from g to the gradients of sum(y * g)."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(list(tensors))
        y = call(*tensors)
    return y, lambda g: tape.gradient(y, list(tensors), g)


def tangent(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of y = call(*tensors): the transpose of the gradients."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(list(tensors))
            y = call(*tensors)
        g = tf.zeros_like(y)
        outer.watch(g)
        gradients = inner.gradient(y, list(tensors), g)
    pairs: Any = [(one, t) for one, t in zip(gradients, tangents) if one is not None]
    return outer.gradient([one for one, _ in pairs], g, [t for _, t in pairs])


def second_order(call: Callable[..., Any], tensors: Sequence[Any], g: Any, cotangents: Sequence[Any]) -> Any:
    """The gradients, with respect to the tensors and g, of the sum of gradients times cotangents."""
    with tf.GradientTape() as outer:
        outer.watch([*tensors, g])
        with tf.GradientTape() as inner:
            inner.watch(list(tensors))
            y = call(*tensors)
        first = inner.gradient(y, list(tensors), g)
    pairs: Any = [(one, c) for one, c in zip(first, cotangents) if one is not None]
    found = outer.gradient([one for one, _ in pairs], [*tensors, g], [c for _, c in pairs])
    return [tf.zeros_like(of) if one is None else one for one, of in zip(found, [*tensors, g])]


def zeros(x: Any) -> Any:
    """Zeros of x's shape and dtype, part of its graph."""
    return tf.where(False, x, tf.zeros_like(x))


def tanh(x: Any) -> Any:
    """tanh(x)."""
    return tf.tanh(x)


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return tf.nn.relu(x)


def matmul(x: Any, w: Any) -> Any:
    """x @ w."""
    return tf.tensordot(x, w, 1)


def view(x: Any) -> Any:
    """Another tensor of the values of x."""
    return tf.identity(x)


def flattened(x: Any) -> Any:
    """The values of x along one axis."""
    return tf.reshape(x, [-1])


def shift(x: Any, offset: int, axis: int) -> Any:
    """result[t] = x[t + offset] along the axis, zero beyond the ends."""
    lost = min(abs(offset), x.shape[axis])
    kept = tf.gather(x, range(lost, x.shape[axis]) if offset > 0 else range(x.shape[axis] - lost), axis=axis)
    beyond = tf.zeros_like(tf.gather(x, range(lost), axis=axis))
    return tf.concat([kept, beyond] if offset > 0 else [beyond, kept], axis)
