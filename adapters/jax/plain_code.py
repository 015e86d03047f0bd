"""Helpers on JAX arrays for scripts without normspec; conformance/reproduce copies their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def tensor(values: str, dtype: str, shape: tuple[int, ...], device: str = "cpu") -> Any:
    """An array of these numbers, in hexadecimal."""
    if dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    given = np.array([float.fromhex(one) for one in values.split()], jnp.dtype(dtype)).reshape(shape)
    kind, _, number = device.partition(":")
    return jax.device_put(given, jax.devices(kind)[int(number or 0)])


def numbers(value: Any) -> Any:
    """A copy of the present values, in float64."""
    return np.array(value).astype(np.float64)


def differentiated(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """y = call(*tensors), and the function from g to the gradients of sum(y * g)."""
    return jax.vjp(call, *tensors)


def tangent(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of y = call(*tensors)."""
    return jax.jvp(call, tuple(tensors), tuple(tangents))[1]


def second_order(call: Callable[..., Any], tensors: Sequence[Any], g: Any, cotangents: Sequence[Any]) -> Any:
    """The gradients, with respect to the tensors and g, of the sum of gradients times cotangents."""
    _, pull = jax.vjp(lambda g, *moved: jax.vjp(call, *moved)[1](g), g, *tensors)
    first, *others = pull(tuple(cotangents))
    return [*others, first]


def jvp_of_vjp(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], g: Any) -> Any:
    """The tangents of the gradients."""
    return jax.jvp(lambda *t: jax.vjp(call, *t)[1](g), tuple(tensors), tuple(tangents))[1]


def vjp_of_jvp(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], g: Any) -> Any:
    """The gradients of the tangent of y."""
    return jax.vjp(lambda *t: jax.jvp(call, t, tuple(tangents))[1], *tensors)[1](g)


def jvp_of_jvp(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], again: Sequence[Any]) -> Any:
    """The tangent of the tangent of y."""
    return jax.jvp(lambda *t: jax.jvp(call, t, tuple(tangents))[1], tuple(tensors), tuple(again))[1]


def zeros(x: Any) -> Any:
    """Zeros of x's shape and dtype."""
    return jnp.zeros_like(x)


def tanh(x: Any) -> Any:
    """tanh(x)."""
    return jnp.tanh(x)


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return jax.nn.relu(x)


def matmul(x: Any, w: Any) -> Any:
    """x @ w, summed in float32 at the least."""
    wide = jnp.promote_types(x.dtype, jnp.float32)
    return jnp.matmul(x, w, precision="highest", preferred_element_type=wide).astype(x.dtype)


def view(x: Any) -> Any:
    """x: an array that never changes has no memory that one could see."""
    return x


def flattened(x: Any) -> Any:
    """The values of x along one axis."""
    return x.reshape((-1,))


def shift(x: Any, offset: int, axis: int) -> Any:
    """result[t] = x[t + offset] along the axis, zero beyond the ends."""
    lost = max(-x.shape[axis], min(offset, x.shape[axis]))
    pads = [(0, 0, 0)] * x.ndim
    pads[axis] = (-lost, lost, 0)
    return jax.lax.pad(x, jnp.zeros((), x.dtype), pads)
