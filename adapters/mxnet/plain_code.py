"""Helpers on MXNet arrays for scripts without normspec; conformance/reproduce copies their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mxnet as mx
import numpy as np


def tensor(values: str, dtype: str, shape: tuple[int, ...], device: str = "cpu") -> Any:
    """An array of these numbers, in hexadecimal."""
    given = np.array([float.fromhex(one) for one in values.split()], dtype).reshape(shape)
    kind, _, number = device.partition(":")
    return mx.nd.array(given, ctx=mx.Context(kind, int(number or 0)), dtype=dtype)


def strided(
    values: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, device: str = "cpu"
) -> Any:
    """The same within a buffer that holds NaN elsewhere; MXNet knows no strides."""
    del strides
    given = ["nan"] * offset + values.split() + ["nan"] * 7
    return tensor(" ".join(given), dtype, (len(given),), device)[offset : len(given) - 7].reshape(shape)


def numbers(value: Any) -> Any:
    """A copy of the present values, in float64."""
    return np.array(value.asnumpy(), np.float64)


def untracked(call: Callable[..., Any], *tensors: Any) -> Any:
    """The call with nothing recorded for gradients, in inference."""
    with mx.autograd.pause(train_mode=False):
        return call(*tensors)


def differentiated(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """y = call(*tensors), and the function from g to the gradients of sum(y * g)."""
    for one in tensors:
        one.attach_grad()
    with mx.autograd.record():
        y = call(*tensors)

    def pull(g: Any) -> Any:
        mx.autograd.backward([y], [g], retain_graph=True)
        return [one.grad.copy() for one in tensors]

    return y, pull


def zeros(x: Any) -> Any:
    """Zeros of x's shape and dtype."""
    return mx.nd.zeros_like(x)


def tanh(x: Any) -> Any:
    """tanh(x)."""
    return mx.nd.tanh(x)


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return mx.nd.relu(x)


def matmul(x: Any, w: Any) -> Any:
    """x @ w, in float32 at the least."""
    wide = "float32" if x.dtype == np.float16 else x.dtype
    return mx.nd.dot(x.astype(wide), w.astype(wide)).astype(x.dtype)


def view(x: Any) -> Any:
    """Another array on the memory of x."""
    return x.reshape(x.shape)


def flattened(x: Any) -> Any:
    """The values of x along one axis."""
    return x.reshape((-1,))
