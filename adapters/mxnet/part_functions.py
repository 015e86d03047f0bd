"""The operations of parts on MXNet arrays."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

zeros, tanh, relu = mx.nd.zeros_like, mx.nd.tanh, mx.nd.relu


def matmul(x: Any, w: Any) -> Any:
    """x @ w over the last axis of x; 16-bit arrays in float32, because dot takes no 16-bit arrays on the CPU."""
    if x.dtype == np.float16:
        return mx.nd.dot(x.astype("float32"), w.astype("float32")).astype("float16")
    return mx.nd.dot(x, w)


def shift(x: Any, offset: int, axis: int) -> Any:
    """result[t] = x[t + offset] along the axis, zero beyond the ends."""
    axis %= len(x.shape)
    size = x.shape[axis]
    lost = min(abs(offset), size)
    if lost == 0:
        return x
    beyond = mx.nd.zeros((*x.shape[:axis], lost, *x.shape[axis + 1 :]), ctx=x.ctx, dtype=x.dtype)
    if lost == size:  # MXNet has no slices of length zero
        return mx.nd.concat(mx.nd.zeros_like(x), dim=axis)
    if offset > 0:
        return mx.nd.concat(mx.nd.slice_axis(x, axis=axis, begin=lost, end=size), beyond, dim=axis)
    return mx.nd.concat(beyond, mx.nd.slice_axis(x, axis=axis, begin=0, end=size - lost), dim=axis)


def replay(x: Any, value: Any, cotangent: Any) -> Any:
    """The value; the cotangent of x is the given one, because MakeLoss has gradient one whatever its cotangent is."""
    beside = mx.nd.MakeLoss(x * mx.nd.BlockGrad(cotangent))
    return mx.nd.where(mx.nd.zeros_like(value), beside, value)
