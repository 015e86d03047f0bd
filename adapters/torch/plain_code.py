"""Helpers on PyTorch tensors for scripts without normspec; conformance/reproduce copies their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch


def tensor(values: str, dtype: str, shape: tuple[int, ...], device: str = "cpu") -> Any:
    """A tensor of these numbers, in hexadecimal."""
    given = [float.fromhex(one) for one in values.split()]
    return torch.tensor(given, dtype=getattr(torch, dtype)).reshape(shape).to(device)


def strided(
    values: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, device: str = "cpu"
) -> Any:
    """The same as a view of a buffer that holds NaN elsewhere; strides and offset in elements."""
    places = offset + np.tensordot(strides, np.indices(shape), 1)
    buffer = torch.full((int(places.max(initial=0)) + 8,), float("nan"), dtype=getattr(torch, dtype))
    buffer[torch.tensor(places)] = tensor(values, dtype, shape)
    return buffer.to(device).as_strided(shape, strides, offset)


def numbers(value: Any) -> Any:
    """A copy of the present values, in float64."""
    return value.detach().double().cpu().numpy().copy()


def untracked(call: Callable[..., Any], *tensors: Any) -> Any:
    """The call with nothing tracked for gradients."""
    with torch.no_grad():
        return call(*tensors)


def inferred(call: Callable[..., Any], *tensors: Any) -> Any:
    """The call in PyTorch's inference mode."""
    with torch.inference_mode():
        return call(*tensors)


def differentiated(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """y = call(*tensors), and the function from g to the gradients of sum(y * g)."""
    for one in tensors:
        one.requires_grad_()
    y = call(*tensors)

    def pull(g: Any) -> Any:
        if not y.requires_grad:
            return [None] * len(tensors)
        return torch.autograd.grad(y, tensors, g, retain_graph=True, allow_unused=True)

    return y, pull


def tangent(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of y = call(*tensors)."""
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(one, t) for one, t in zip(tensors, tangents)]
        return torch.autograd.forward_ad.unpack_dual(call(*duals)).tangent


def second_order(call: Callable[..., Any], tensors: Sequence[Any], g: Any, cotangents: Sequence[Any]) -> Any:
    """The gradients, with respect to the tensors and g, of the sum of gradients times cotangents."""
    for one in (*tensors, g):
        one.requires_grad_()
    first = torch.autograd.grad(call(*tensors), tensors, g, create_graph=True, allow_unused=True)
    pairs = [(one, c) for one, c in zip(first, cotangents) if one is not None and one.requires_grad]
    found = torch.autograd.grad([one for one, _ in pairs], [*tensors, g], [c for _, c in pairs], allow_unused=True)
    return [torch.zeros_like(of) if one is None else one for one, of in zip(found, [*tensors, g])]


def jvp_of_vjp(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], g: Any) -> Any:
    """The tangents of the gradients."""
    return torch.func.jvp(lambda *t: torch.func.vjp(call, *t)[1](g), tuple(tensors), tuple(tangents))[1]


def vjp_of_jvp(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], g: Any) -> Any:
    """The gradients of the tangent of y."""
    return torch.func.vjp(lambda *t: torch.func.jvp(call, t, tuple(tangents))[1], *tensors)[1](g)


def jvp_of_jvp(call: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], again: Sequence[Any]) -> Any:
    """The tangent of the tangent of y."""
    return torch.func.jvp(lambda *t: torch.func.jvp(call, t, tuple(tangents))[1], tuple(tensors), tuple(again))[1]


def overwritten(value: Any, other: Any, fresh: bool) -> Any:
    """The tensor with other values in its memory; or another tensor on that memory."""
    with torch.no_grad():
        value.copy_(other)
    return value.detach().requires_grad_(value.requires_grad) if fresh else value


def zeros(x: Any) -> Any:
    """Zeros of x's shape and dtype, part of its graph: some code refuses a result that carries no gradient."""
    return torch.where(torch.zeros((), dtype=torch.bool, device=x.device), x, torch.zeros_like(x))


def tanh(x: Any) -> Any:
    """tanh(x)."""
    return torch.tanh(x)


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return torch.relu(x)


def matmul(x: Any, w: Any) -> Any:
    """x @ w."""
    return x @ w


def view(x: Any) -> Any:
    """Another tensor on the memory of x."""
    return x.view_as(x)


def flattened(x: Any) -> Any:
    """The values of x along one axis."""
    return x.reshape((-1,))


def shift(x: Any, offset: int, axis: int) -> Any:
    """result[t] = x[t + offset] along the axis, zero beyond the ends."""
    lost = min(abs(offset), x.shape[axis])
    kept = x.narrow(axis, max(0, lost if offset > 0 else 0), x.shape[axis] - lost)
    beyond = torch.zeros_like(x.narrow(axis, 0, lost))
    return torch.cat([kept, beyond] if offset > 0 else [beyond, kept], axis)
