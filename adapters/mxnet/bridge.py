"""The bridge for MXNet arrays: conversion, autograd in reverse mode, and devices."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd

from ...spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable, Unsupported
from ..bridge import Bridge
from ..known import KnownViolation
from ..layouts import place
from . import part_functions

_DTYPES = ("float16", "float32", "float64")


class _Guard:
    """
    Sets recording and training mode, and turns Python's warnings off; MXNet restores its modes itself.

    For MXNet a size of zero means "not known yet" unless NumPy's shapes are turned on; they are if x has no elements.
    """

    __slots__ = ("_modes", "_warnings")

    def __init__(self, size: int, gradients: bool, training: bool) -> None:
        scope = (autograd.record if gradients else autograd.pause)(train_mode=training)
        self._modes = [scope] if size else [mx.util.np_shape(True), scope]

    def __enter__(self) -> None:
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")
        for mode in self._modes:
            mode.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(kind, error, trace)
        self._warnings.__exit__(kind, error, trace)
        if isinstance(error, mx.MXNetError):
            # MXNet's message begins with a trace of its own; the error itself is in the last line.
            said = str(error).strip().splitlines() or [""]
            if len(said) > 1:
                raise mx.MXNetError(said[-1].partition("MXNetError: ")[2] or said[-1]) from error


class MxnetBridge(Bridge):
    """MXNet on its CPU and GPU devices, without bfloat16: MXNet's Python side cannot make or read it."""

    name = "mxnet"
    version = mx.__version__
    violations = (
        KnownViolation(
            "CM-S2",
            "a sum or mean over arrays without elements raises 'Shape size mismatch', forward or backward",
            links=("https://github.com/apache/mxnet/blob/v1.9.x/src/operator/tensor/broadcast_reduce_op.h",),
            failures=("raises",),
            always=False,
        ),
    )
    dtypes = _DTYPES
    # MXNet has no strides: a view is one contiguous piece of a larger buffer.
    layouts = ("contiguous", "offset", "offset_by_16_bytes")
    differentiates = True
    functions = part_functions

    def check_device(self, device: str) -> None:
        named = re.fullmatch(r"(cpu|gpu)(?::(\d+))?", device)
        if named is None:
            raise DeviceUnavailable(f"mxnet knows no device {device!r}: use cpu, gpu or gpu:N")
        kind, index = named.group(1), int(named.group(2) or 0)
        if kind == "cpu":
            return
        count = mx.context.num_gpus()
        if not count:
            raise DeviceUnavailable(
                f"device {device!r}: mxnet {self.version} finds no usable GPU; install one of the CUDA builds"
                " (mxnet-cu112 and its like) on a machine with a GPU, or use --device cpu"
            )
        if index >= count:
            raise DeviceUnavailable(f"device {device!r}: mxnet finds {count}, the last being gpu:{count - 1}")

    def devices(self) -> tuple[str, ...]:
        return ("cpu", *(f"gpu:{index}" for index in range(mx.context.num_gpus())))

    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> Any:
        if array.size == 0 and layout == "contiguous":
            with mx.util.np_shape(True):
                made = _made(array, device)
                if tracked:
                    made.attach_grad()
                return made
        if layout == "contiguous":
            made = _made(array, device)
        elif layout not in self.layouts:
            raise LayoutNotApplicable(f"mxnet has no layout {layout!r}")
        elif array.size == 0:
            raise LayoutNotApplicable("an array without elements has no place in a buffer")
        else:
            placed = place(array, layout)
            made = _made(placed.buffer, device)[placed.offset : placed.offset + array.size].reshape(array.shape)
        if tracked:
            made.attach_grad()
        return made

    def check_tensor(self, value: Any, what: str) -> None:
        if not isinstance(value, mx.nd.NDArray):
            got = "None" if value is None else type(value).__name__
            raise BadOutput(f"{what} is {got}, not a mxnet.nd.NDArray")
        if value.stype != "default":
            raise BadOutput(f"{what} is not a dense array, but of storage type {value.stype}")
        name = np.dtype(value.dtype).name
        if name not in _DTYPES:
            raise BadOutput(f"{what} has dtype {name}", "dtype")

    def describe(self, value: Any) -> tuple[tuple[int, ...], str]:
        return tuple(value.shape), np.dtype(value.dtype).name

    def array(self, value: Any, what: str) -> np.ndarray:
        self.check_tensor(value, what)
        return np.array(value.asnumpy(), order="C")

    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        return _Guard(size, gradients, training)

    def synchronise(self, device: str) -> None:
        # MXNet's engine is asynchronous on the CPU too.
        mx.nd.waitall()

    def tracks(self, output: Any) -> bool:
        try:
            autograd.get_symbol(output)
        except mx.MXNetError:
            return False
        return True

    def vjp(self, output: Any, inputs: Sequence[Any], cotangent: Any, *, keep: bool = False) -> list[Any | None]:
        if not self.tracks(output):
            return [None] * len(inputs)
        # autograd.grad raises if an input is not reached; backward leaves the mark of that input unchanged.
        for tensor in inputs:
            tensor._fresh_grad = False
        autograd.backward([output], [cotangent], retain_graph=keep)
        return [tensor.grad.copy() if tensor._fresh_grad else None for tensor in inputs]

    def jvp(self, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
        raise Unsupported("mxnet has no forward-mode derivatives")

    def vjp_vjp(
        self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any, second: Sequence[Any]
    ) -> list[Any | None]:
        # autograd turns each given cotangent into a new node that is connected to nothing.
        raise Unsupported("mxnet does not differentiate a gradient with respect to its cotangent")

    def view(self, x: Any) -> Any:
        return x.reshape(x.shape)

    def buffer(self, value: Any) -> Any:
        return mx.nd.empty(value.shape, ctx=value.ctx, dtype=value.dtype)

    def write(self, value: Any, buffer: Any) -> Any:
        # A new array on the buffer's memory: the buffer itself would be part of the previous call's graph.
        return mx.nd.identity(value, out=buffer.detach())

    def move_axis(self, tensor: Any, source: int, destination: int) -> Any:
        return mx.nd.moveaxis(tensor, source, destination)


def _made(array: np.ndarray, device: str) -> Any:
    """An MXNet array with these values in memory of its own."""
    return mx.nd.array(np.ascontiguousarray(array), ctx=_context(device), dtype=array.dtype)


def _context(device: str) -> Any:
    kind, _, index = device.partition(":")
    return mx.Context(kind, int(index or 0))
