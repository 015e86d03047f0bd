"""The bridge for TensorFlow's eager tensors: derivatives by tapes, and devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf

from ...spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable, Unsupported
from ..bridge import Bridge
from ..dtypes import DTYPES
from ..nesting import nested
from . import part_functions
from .guard import Guard
from .tapes import Tapes

#: A device in TensorFlow's notation: cpu, CPU:0, /GPU:0, /device:GPU:1.
_DEVICE = re.compile(r"/?(?:device:)?(cpu|gpu)(?::(\d+))?", re.IGNORECASE)


class TensorFlowBridge(Bridge):
    """TensorFlow's eager tensors on its CPU and GPU devices."""

    name = "tensorflow"
    version = tf.__version__
    dtypes = tuple(DTYPES)
    # A tensor has no strides.
    layouts = ("contiguous",)
    differentiates = True
    functions = part_functions

    def __init__(self) -> None:
        self._tapes = Tapes()
        #: Tensors that are to be tracked, and that no tape watches yet.
        self._noted: list[Any] = []
        self._device = "/CPU:0"
        self._guard = Guard(self._tapes, (), 0, self._device)

    # Devices ----------------------------------------------------------------------------------------------

    def check_device(self, device: str) -> None:
        parsed = _DEVICE.fullmatch(device)
        if parsed is None:
            raise DeviceUnavailable(f"tensorflow knows no device {device!r}: use cpu, /CPU:0, gpu, /GPU:0 or /GPU:N")
        kind, index = parsed[1].upper(), int(parsed[2] or 0)
        found = len(tf.config.list_physical_devices(kind))
        if found == 0:
            why = "finds no usable GPU" if tf.test.is_built_with_cuda() else "is built without CUDA"
            raise DeviceUnavailable(
                f"device {device!r}: tensorflow {self.version} {why}; install tensorflow[and-cuda]"
                " (https://www.tensorflow.org/install/pip) on a machine with a GPU, or use --device cpu"
            )
        if index >= found:
            raise DeviceUnavailable(f"device {device!r}: tensorflow finds {found}, the last being /{kind}:{found - 1}")

    def devices(self) -> tuple[str, ...]:
        """The names of the devices here: cpu, and each GPU as /GPU:N."""
        return ("cpu", *(f"/GPU:{index}" for index in range(len(tf.config.list_physical_devices("GPU")))))

    def synchronise(self, device: str) -> None:
        if _place(device) != "/CPU:0":
            tf.test.experimental.sync_devices()

    # Tensors ----------------------------------------------------------------------------------------------

    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> Any:
        if layout not in self.layouts:
            raise LayoutNotApplicable(f"tensorflow has no layout {layout!r}: a tensor has no strides")
        self._device = _place(device)
        with tf.device(self._device):
            # A copy, because TensorFlow uses the array's own memory if it can.
            made = tf.constant(np.array(array, order="C"))
        if tracked:
            self._noted.append(made)
        return made

    def check_tensor(self, value: Any, what: str) -> None:
        if not isinstance(value, (tf.Tensor, tf.Variable)):
            got = "None" if value is None else type(value).__name__
            raise BadOutput(f"{what} is {got}, not a tf.Tensor")
        if value.dtype.name not in DTYPES:
            raise BadOutput(f"{what} has dtype {value.dtype.name}", "dtype")
        if not hasattr(value, "numpy"):
            raise BadOutput(f"{what} is a symbolic tf.Tensor, which left the tf.function that it belongs to")

    def describe(self, value: Any) -> tuple[tuple[int, ...], str]:
        return tuple(value.shape), value.dtype.name

    def array(self, value: Any, what: str) -> np.ndarray:
        self.check_tensor(value, what)
        return np.array(value.numpy(), order="C")

    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        watched, self._noted = self._noted, []
        self._guard = Guard(self._tapes, watched if gradients else (), size, self._device)
        return self._guard

    # Derivatives ------------------------------------------------------------------------------------------

    def tracks(self, output: Any) -> bool:
        return self._tapes.reaches(output)

    def vjp(self, output: Any, inputs: Sequence[Any], cotangent: Any, *, keep: bool = False) -> list[Any | None]:
        tape = self._tapes.of(inputs[0])
        try:
            return _dense(tape.gradient(output, list(inputs), output_gradients=cotangent))
        finally:
            if not keep:
                self._tapes.drop(tape)

    def jvp(self, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
        given, moving = zip(*(pair for pair in zip(inputs, tangents) if pair[0] is not None))

        def y(*moved: Any) -> Any:
            rest = iter(moved)
            return call(*(None if value is None else next(rest) for value in inputs))

        return _tangent(y, given, moving)[1]

    def vjp_vjp(
        self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any, second: Sequence[Any]
    ) -> list[Any | None]:
        given = [value for value in inputs if value is not None]
        with self._guard.paused(), tf.GradientTape(watch_accessed_variables=False) as outer:
            outer.watch([*given, cotangent])
            with tf.GradientTape(watch_accessed_variables=False) as inner:
                inner.watch(given)
                output = call(*inputs)
            found = iter(_dense(inner.gradient(output, given, output_gradients=cotangent)))
            first = [None if value is None else next(found) for value in inputs]
        if not any(gradient is not None for gradient in first):
            raise Unsupported("y carries no gradient that could be differentiated again")
        pairs = [(g, again) for g, again in zip(first, second) if g is not None and again is not None]
        if not pairs:
            return [None] * (len(inputs) + 1)
        sources, seconds = [*given, cotangent], [again for _, again in pairs]
        bars = _dense(outer.gradient([gradient for gradient, _ in pairs], sources, output_gradients=seconds))
        if not any(bar is not None for bar in bars):
            # The cotangent is watched and gradients depend on it, so these gradients come from outside TensorFlow.
            raise Unsupported("the gradients carry no gradient of their own: the backward is not differentiable")
        following = iter(bars)
        return [None if value is None else next(following) for value in inputs] + [next(following)]

    def nested(
        self, kind: str, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any], other: Any
    ) -> list[Any | None]:
        with self._guard.paused():
            return nested(_tangent, _pulled, kind, call, inputs, tangents, other)

    # Parts ------------------------------------------------------------------------------------------------

    def view(self, x: Any) -> Any:
        return tf.identity(x)

    def flattened(self, x: Any) -> Any:
        return tf.reshape(x, [-1])

    def buffer(self, value: Any) -> Any:
        """None: tensors are never written to, so two results cannot share memory that changes."""
        return None

    def write(self, value: Any, buffer: Any) -> Any:
        return value

    def move_axis(self, tensor: Any, source: int, destination: int) -> Any:
        order = [axis for axis in range(len(tensor.shape)) if axis != source % len(tensor.shape)]
        order.insert(destination % len(tensor.shape), source % len(tensor.shape))
        return tf.transpose(tensor, order)


@lru_cache(maxsize=64)
def _place(device: str) -> str:
    """The name of a device, which passed check_device, in the form for tf.device."""
    parsed = _DEVICE.fullmatch(device)
    assert parsed is not None
    return f"/{parsed[1].upper()}:{parsed[2] or 0}"


def _tangent(function: Callable[..., Any], given: Sequence[Any], moving: Sequence[Any]) -> tuple[Any, Any]:
    """
    A function's result and its tangent, or lists of both; None for a tangent that nothing reaches.

    The tangent is the transpose of the vjp, which is linear in its cotangent. tf.autodiff.ForwardAccumulator is not
    used: it transposes the vjp of each operation, and traces a function for every operation and shape, which takes a
    second or more per call.
    """
    with tf.GradientTape(watch_accessed_variables=False) as inner:
        inner.watch(given)
        returned = function(*given)
    single = not isinstance(returned, (list, tuple))
    outputs = [returned] if single else list(returned)
    with tf.GradientTape(watch_accessed_variables=False) as outer:
        cotangents = [None if output is None else tf.zeros_like(output) for output in outputs]
        outer.watch([one for one in cotangents if one is not None])
        back = _pulled_from(inner, outputs, given, cotangents)
    pairs = [(gradient, tangent) for gradient, tangent in zip(back, moving) if gradient is not None]
    tangents = [None] * len(outputs)
    if pairs:
        gradients, directions = (list(side) for side in zip(*pairs))
        sources = [one for one in cotangents if one is not None]
        there = iter(_dense(outer.gradient(gradients, sources, output_gradients=directions)))
        tangents = [None if one is None else next(there) for one in cotangents]
    return (returned, tangents[0]) if single else (returned, tangents)


def _pulled(function: Callable[..., Any], *given: Any) -> tuple[Any, Callable[[Any], list[Any]]]:
    """A function's result, and a function that pulls a cotangent of the result back to the arguments."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(given)
        output = function(*given)

    def pull(cotangent: Any) -> list[Any]:
        return [None] * len(given) if output is None else _pulled_from(tape, [output], given, [cotangent])

    return output, pull


def _pulled_from(tape: Any, outputs: Sequence[Any], given: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The gradients from a tape; outputs that are None are left out."""
    there = [(output, cotangent) for output, cotangent in zip(outputs, cotangents) if output is not None]
    if not there:
        return [None] * len(given)
    targets, seeds = (list(side) for side in zip(*there))
    return _dense(tape.gradient(targets, list(given), output_gradients=seeds))


def _dense(gradients: Sequence[Any]) -> list[Any]:
    """Gradients as tensors: the gradient of a lookup comes as IndexedSlices, that is, rows with their indices."""
    return [tf.convert_to_tensor(one) if isinstance(one, tf.IndexedSlices) else one for one in gradients]
