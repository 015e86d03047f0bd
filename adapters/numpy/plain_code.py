"""Helpers on NumPy arrays for scripts without normspec; conformance/reproduce copies their source."""

from __future__ import annotations

from typing import Any

import numpy as np


def tensor(values: str, dtype: str, shape: tuple[int, ...]) -> Any:
    """An array of these numbers, in hexadecimal."""
    return np.array([float.fromhex(one) for one in values.split()], dtype).reshape(shape)


def strided(values: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    """The same as a view of a buffer that holds NaN elsewhere; strides and offset in elements."""
    places = offset + np.tensordot(strides, np.indices(shape), 1)
    buffer = np.full(places.max(initial=0) + 8, np.nan, dtype)
    buffer[places] = tensor(values, dtype, shape)
    step = buffer.itemsize
    return np.lib.stride_tricks.as_strided(buffer[offset:], shape, [stride * step for stride in strides])


def numbers(value: Any) -> Any:
    """A copy of the present values, in float64."""
    return np.array(value, np.float64)


def overwritten(value: Any, other: Any, fresh: bool) -> Any:
    """The array with other values in its memory; or another array on that memory."""
    value[...] = other
    return value.view() if fresh else value


def zeros(x: Any) -> Any:
    """Zeros of x's shape and dtype."""
    return np.zeros_like(x)


def tanh(x: Any) -> Any:
    """tanh(x), computed in float32 at the least."""
    return np.tanh(x.astype(np.promote_types(x.dtype, np.float32))).astype(x.dtype)


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return np.maximum(x, np.zeros((), x.dtype))


def matmul(x: Any, w: Any) -> Any:
    """x @ w, computed in float32 at the least."""
    wide = np.promote_types(x.dtype, np.float32)
    return (x.astype(wide) @ w.astype(wide)).astype(x.dtype)


def view(x: Any) -> Any:
    """Another array on the memory of x."""
    return x.view()


def flattened(x: Any) -> Any:
    """The values of x along one axis."""
    return x.reshape((-1,))


def shift(x: Any, offset: int, axis: int) -> Any:
    """result[t] = x[t + offset] along the axis, zero beyond the ends."""
    size = x.shape[axis]
    lost = min(abs(offset), size)
    result = np.zeros(x.shape, x.dtype)
    source, place = np.moveaxis(x, axis, 0), np.moveaxis(result, axis, 0)
    if offset >= 0:
        place[: size - lost] = source[lost:]
    else:
        place[lost:] = source[: size - lost]
    return result
