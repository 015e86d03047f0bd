"""The bridge for PyTorch tensors: conversion, autograd in reverse and forward mode, and devices."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import func
from torch.autograd import forward_ad

from ...spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable, Unsupported
from ..bridge import Bridge
from ..dtypes import DTYPES
from ..layouts import LAYOUTS, place
from ..nesting import nested
from . import part_functions

#: Where to read PyTorch's source.
SOURCE = "https://github.com/pytorch/pytorch/blob/main/"

_TORCH_DTYPES = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}

_BFLOAT16 = DTYPES["bfloat16"]

#: From this many elements of x on, torch may use all threads of the process. Below, a parallel kernel spends its time
#: on waking threads: 20 times the work on a busy machine. Above, the parallel paths should be tested, so torch gets at
#: least two threads if there are two cores; two are enough for a race.
_PARALLEL_ELEMENTS = 1 << 16
_THREADS = min(2, os.cpu_count() or 1)


class _Guard:
    """
    Sets gradient mode, threads and warnings for the target's code, and restores them afterwards.

    Calls without gradients run as under no_grad, and those in inference mode as under inference_mode, which code can
    tell apart. The thread count is restored because it belongs to the process, and a check may run inside a user's
    program.
    """

    __slots__ = ("_grad", "_gradients", "_inference", "_size", "_threads", "_warnings")

    def __init__(self, size: int, gradients: bool, training: bool) -> None:
        self._size = size
        self._gradients = gradients
        self._inference = nullcontext() if gradients or training else torch.inference_mode()

    def __enter__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._threads = torch.get_num_threads()
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")
        self._inference.__enter__()
        torch.set_grad_enabled(self._gradients)
        threads = 1 if self._size < _PARALLEL_ELEMENTS else max(self._threads, _THREADS)
        if threads != self._threads:
            torch.set_num_threads(threads)

    def __exit__(self, *error: Any) -> None:
        torch.set_num_threads(self._threads)
        self._inference.__exit__(*error)
        torch.set_grad_enabled(self._grad)
        self._warnings.__exit__(*error)


class TorchBridge(Bridge):
    """PyTorch on its CPU and CUDA devices."""

    name = "torch"
    version = torch.__version__
    dtypes = tuple(DTYPES)
    # torch has no negative strides.
    layouts = tuple(name for name in LAYOUTS if name != "negative")
    differentiates = True
    rewrites = True
    functions = part_functions
    memory_errors = (torch.cuda.OutOfMemoryError,)

    def check_device(self, device: str) -> None:
        try:
            kind, index = (parsed := torch.device(device)).type, parsed.index
        except (RuntimeError, TypeError) as error:
            raise DeviceUnavailable(f"torch knows no device {device!r}: use cpu, cuda or cuda:N") from error
        if kind == "cpu" and index is None:
            return
        if kind == "cpu":
            raise DeviceUnavailable(f"torch has one device for the CPU: write cpu in place of {device!r}")
        if kind != "cuda":
            raise DeviceUnavailable(f"normspec does not drive torch's device {device!r}: use cpu, cuda or cuda:N")
        if not torch.cuda.is_available():
            why = "finds no usable GPU" if torch.version.cuda else "is built without CUDA"
            raise DeviceUnavailable(
                f"device {device!r}: torch {self.version} {why}; install a CUDA build"
                " (https://pytorch.org/get-started/locally) on a machine with a GPU, or use --device cpu"
            )
        count = torch.cuda.device_count()
        if index is not None and index >= count:
            raise DeviceUnavailable(f"device {device!r}: torch finds {count}, the last being cuda:{count - 1}")

    def import_derivatives(self) -> None:
        # The first cotangent imports sympy, and the first dual number torch._dynamo: two seconds together.
        x = torch.ones(1).requires_grad_()
        torch.autograd.grad(x * 2, x, torch.ones(1))
        with forward_ad.dual_level():
            forward_ad.make_dual(torch.ones(1), torch.ones(1)) * 2

    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> torch.Tensor:
        if layout == "contiguous":
            made = _from_numpy(np.array(array, order="C"))
            # torch aligns its own memory as its kernels expect; NumPy does not.
            made = made.clone() if device == "cpu" else made.to(device)
        elif layout not in self.layouts:
            raise LayoutNotApplicable(f"torch has no layout {layout!r}")
        else:
            placed = place(array, layout)
            buffer = _from_numpy(placed.buffer)
            buffer = buffer.clone() if device == "cpu" else buffer.to(device)
            made = buffer.as_strided(placed.shape, placed.strides, placed.offset)
        return made.requires_grad_() if tracked else made

    def filler(self, arrays: Sequence[np.ndarray], device: str) -> Callable[[], object]:
        held = [self.tensor(array, "contiguous", device) for array in arrays]  # copied in half the time of an array
        return lambda: [tensor.clone() for tensor in held]

    def rewritten(self, tensor: torch.Tensor, array: np.ndarray, *, fresh: bool) -> torch.Tensor:
        with torch.no_grad():  # a tracked leaf may be written to only under no_grad
            tensor.copy_(_from_numpy(np.array(array, order="C")))
        return tensor.detach().requires_grad_(tensor.requires_grad) if fresh else tensor

    def check_tensor(self, value: Any, what: str) -> None:
        if not isinstance(value, torch.Tensor):
            got = "None" if value is None else type(value).__name__
            raise BadOutput(f"{what} is {got}, not a torch.Tensor")
        if value.dtype not in _TORCH_DTYPES:
            raise BadOutput(f"{what} has dtype {str(value.dtype).replace('torch.', '')}", "dtype")
        if value.is_nested:  # its layout may be torch.strided
            raise BadOutput(f"{what} is a nested tensor, not a dense one")
        if value.layout is not torch.strided:
            raise BadOutput(f"{what} is not a dense tensor, but of layout {value.layout}")
        if value.device.type not in ("cpu", "cuda"):
            raise BadOutput(f"{what} is on device {value.device}")

    def describe(self, value: torch.Tensor) -> tuple[tuple[int, ...], str]:
        return tuple(value.shape), _TORCH_DTYPES[value.dtype]

    def array(self, value: Any, what: str) -> np.ndarray:
        self.check_tensor(value, what)
        # Reading must work whatever autograd or inference mode says; force handles every kind of view and device.
        if value.dtype is torch.bfloat16:
            # torch knows no NumPy dtype for bfloat16, so the bits are passed as integers.
            bits = value.detach().view(torch.int16).numpy(force=True)
            return np.array(bits.view(_BFLOAT16), order="C")
        return np.array(value.numpy(force=True), order="C")

    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        return _Guard(size, gradients, training)

    def synchronise(self, device: str) -> None:
        if device != "cpu":
            torch.cuda.synchronize(device)

    def tracks(self, output: torch.Tensor) -> bool:
        return output.requires_grad

    def vjp(self, output: Any, inputs: Sequence[Any], cotangent: Any, *, keep: bool = False) -> list[Any | None]:
        if not output.requires_grad:
            return [None] * len(inputs)
        if _holds([output.grad_fn], "CheckpointFunctionBackward"):
            # Reentrant checkpointing calls its part again, and backward inside backward: it needs every leaf's .grad.
            for tensor in inputs:
                tensor.grad = None
            torch.autograd.backward(output, cotangent, retain_graph=keep)
            found = [tensor.grad for tensor in inputs]
            for tensor in inputs:
                tensor.grad = None
            return found
        # The graph is kept only on request: a compiled function gives its buffers to the one backward pass it expects.
        return list(torch.autograd.grad(output, inputs, cotangent, retain_graph=keep, allow_unused=True))

    def gradient_left(self, tensor: torch.Tensor) -> bool:
        return tensor.is_leaf and tensor.grad is not None

    def jvp(self, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
        _require_tangents(call, inputs)
        with forward_ad.dual_level():
            duals = [
                None if value is None else forward_ad.make_dual(value, tangent)
                for value, tangent in zip(inputs, tangents)
            ]
            return forward_ad.unpack_dual(call(*duals)).tangent

    def vjp_vjp(
        self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any, second: Sequence[Any]
    ) -> list[Any | None]:
        given = [value for value in inputs if value is not None]
        output = call(*inputs)
        if not output.requires_grad:
            raise Unsupported("y carries no gradient that could be differentiated again")
        found = iter(torch.autograd.grad(output, given, cotangent, create_graph=True, allow_unused=True))
        first = [None if value is None else next(found) for value in inputs]
        if not any(gradient is not None and gradient.requires_grad for gradient in first):
            # The cotangent is tracked and the gradients depend on it, so these gradients come from outside autograd.
            raise Unsupported("the gradients carry no gradient of their own: the backward is not differentiable")
        # once_differentiable leaves a node that raises when it runs. autograd.grad with given inputs does not run it,
        # and would return None instead of the error.
        if _holds([gradient.grad_fn for gradient in first if gradient is not None], "torch::autograd::Error"):
            raise Unsupported("the backward is marked once_differentiable")
        # A gradient that depends on nothing tracked is a constant for autograd, so it adds nothing.
        pairs = [
            (gradient, again)
            for gradient, again in zip(first, second)
            if gradient is not None and again is not None and gradient.requires_grad
        ]
        if not pairs:
            return [None] * (len(inputs) + 1)
        bars = iter(
            torch.autograd.grad([g for g, _ in pairs], [*given, cotangent], [a for _, a in pairs], allow_unused=True)
        )
        return [None if value is None else next(bars) for value in inputs] + [next(bars)]

    def nested(
        self, kind: str, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any], other: Any
    ) -> list[Any | None]:
        _require_tangents(call, inputs)
        if kind == "jvp_jvp" and _has_tangent_of_its_own(call, inputs):
            raise Unsupported(
                "PyTorch takes the tangent of a torch.autograd.Function's jvp for zero"
                " (https://github.com/pytorch/pytorch/issues/197867)"
            )
        return nested(func.jvp, func.vjp, kind, call, inputs, tangents, other)

    def move_axis(self, tensor: torch.Tensor, source: int, destination: int) -> torch.Tensor:
        moved = tensor.movedim(source, destination)
        return moved.contiguous() if tensor.is_contiguous() else moved

    def written_back(self, handed: torch.Tensor, x: torch.Tensor, source: int, destination: int) -> None:
        if not x.is_contiguous():  # the target was given a view
            return
        with torch.no_grad():
            now, before = handed.detach().movedim(source, destination), x.detach()
            if ((now != before) & ~(now.isnan() & before.isnan())).any():
                x.copy_(now)

    def intermediate(self, tensor: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():  # a target may have turned it off when it was imported
            made = tensor.clone()
            made.retain_grad()  # reentrant checkpointing leaves gradients there
        return made

    def parameter(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.nn.Parameter(tensor.detach())

    def view(self, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    def laid_out(self, value: torch.Tensor, layout: str) -> torch.Tensor:
        if layout == "strided":  # the gaps hold NaN, so that a result that counts them in shows it
            return torch.stack((value, torch.full_like(value, torch.nan)), -1)[..., 0]
        axes = tuple(reversed(range(value.dim())))
        return value.permute(axes).clone(memory_format=torch.contiguous_format).permute(axes)

    def buffer(self, value: torch.Tensor) -> torch.Tensor:
        return torch.empty(value.shape, dtype=value.dtype, device=value.device)

    def write(self, value: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
        # A new tensor on the buffer's memory, so that one call's graph does not extend that of the call before.
        return buffer.detach().copy_(value)


def _from_numpy(array: np.ndarray) -> torch.Tensor:
    """A tensor on the array's memory; the array must be writable, or torch warns."""
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _holds(nodes: Sequence[Any], name: str) -> bool:
    """Whether autograd's graph, searched from these nodes, has a node of this name."""
    return any(node.name() == name for node in _graph(nodes))


def _has_tangent_of_its_own(call: Callable[..., Any], inputs: Sequence[Any]) -> bool:
    """Whether a call goes through an autograd.Function that has a jvp."""
    functions = (getattr(node, "_forward_cls", torch.autograd.Function) for node in _graph_of(call, inputs))
    return any(one.jvp is not torch.autograd.Function.jvp for one in functions)


def _require_tangents(call: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Raise Unsupported if a call goes through a custom operator: PyTorch takes the tangent of its result for zero."""
    if any(type(node).__name__.startswith("GeneratedBackwardFor_") for node in _graph_of(call, inputs)):
        raise Unsupported("PyTorch drops the tangent at an operator of torch.library.custom_op")


def _graph_of(call: Callable[..., Any], inputs: Sequence[Any]) -> Iterator[Any]:
    """The nodes of autograd's graph of a call."""
    output = call(*(None if value is None else value.detach().requires_grad_() for value in inputs))
    return _graph([output.grad_fn])


def _graph(nodes: Sequence[Any]) -> Iterator[Any]:
    """The nodes of autograd's graph, searched from these."""
    waiting, seen = [node for node in nodes if node is not None], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node
            waiting += [following for following, _ in node.next_functions if following is not None]
