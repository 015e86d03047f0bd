"""The bridge for JAX arrays: conversion, reverse and forward mode, float64 as well as float32, and devices."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer

from ...spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable, Unsupported
from ..bridge import Bridge
from ..dtypes import DTYPES
from ..evaluation import check_like
from ..nesting import nested
from . import part_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

_NAMES = {dtype: name for name, dtype in DTYPES.items()}

#: JAX's names for platforms; "gpu" means cuda or rocm, whichever is available.
_PLATFORMS = ("cpu", "gpu", "cuda", "rocm", "tpu")

#: Parts of JAX's error messages for a function that it cannot differentiate in one mode, or in both.
_NO_FORWARD_MODE = "(jvp) to a custom_vjp"
_NO_DERIVATIVE = ("callbacks do not support JVP", "callbacks do not support transpose")

#: What JAX reports for each program that it compiles or loads from disk.
_COMPILED = "/jax/core/compile/backend_compile_duration"
#: The most programs that stay in memory. One takes about 1.7 MiB; a dtype needs some 600 in `quick`, most of them once.
MOST_PROGRAMS = 400


class _Guard:
    """
    Sets width, device and warnings for the target's code, and restores them afterwards.

    JAX has float64 only with x64 enabled, and then every number without a dtype is a float64. So x64 is enabled only
    for float64 data: users run a function on narrower data without it.
    """

    __slots__ = ("_bridge", "_device", "_stack", "_wide")

    def __init__(self, bridge: JaxBridge, device: Any, wide: bool) -> None:
        self._bridge = bridge
        self._device = device
        self._wide = wide

    def __enter__(self) -> None:
        self._bridge.free_many_programs()
        self._bridge.running += 1
        self._stack = ExitStack()
        self._stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        self._stack.enter_context(jax.enable_x64(self._wide))
        self._stack.enter_context(jax.default_device(self._device))

    def __exit__(self, *error: Any) -> None:
        self._bridge.running -= 1
        self._stack.close()


class JaxBridge(Bridge):
    """JAX on all devices that it finds: the CPU, GPUs, TPUs."""

    name = "jax"
    version = jax.__version__
    dtypes = tuple(DTYPES)
    # XLA decides how an array lies in memory.
    layouts = ("contiguous",)
    differentiates = True
    functional = True
    functions = part_functions

    def __init__(self) -> None:
        #: The device and width of the tensors made last; the next call uses these.
        self._device: Any = None
        self._wide = False
        #: How many calls of the target's code are running.
        self.running = 0
        #: How many programs have been compiled, or loaded from disk, since the last were freed.
        self._programs = 0
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def check_device(self, device: str) -> None:
        _device(device)

    def devices(self) -> tuple[str, ...]:
        found = ["cpu"]
        if jax.default_backend() != "cpu":
            found += [f"{jax.default_backend()}:{index}" for index in range(len(jax.devices()))]
        return tuple(found)

    def tensor(self, array: np.ndarray, layout: str, device: str, *, tracked: bool = False) -> jax.Array:
        if layout != "contiguous":
            raise LayoutNotApplicable(f"jax has no layout {layout!r}: XLA decides how arrays lie in memory")
        self._device, self._wide = _device(device), array.dtype == np.float64
        with jax.enable_x64(self._wide):
            # A copy, because on the CPU JAX may use the NumPy array's own memory.
            return jax.device_put(np.array(array, order="C"), self._device)

    def check_tensor(self, value: Any, what: str) -> None:
        if not isinstance(value, jax.Array):
            got = "None" if value is None else type(value).__name__
            raise BadOutput(f"{what} is {got}, not a jax.Array")
        if value.dtype not in _NAMES:
            raise BadOutput(f"{what} has dtype {value.dtype}", "dtype")

    def describe(self, value: Any) -> tuple[tuple[int, ...], str]:
        return tuple(value.shape), _NAMES[value.dtype]

    def array(self, value: Any, what: str) -> np.ndarray:
        self.check_tensor(value, what)
        if isinstance(value, Tracer):
            if self.running:
                raise Unsupported("it is traced as a whole: what its parts are handed has no value while they run")
            raise BadOutput(f"{what} is a tracer, which has leaked out of a transformation and has no value")
        return np.array(value, order="C")

    def free_compiled(self) -> None:
        # Programs on disk are quickly loaded again.
        jax.clear_caches()
        self._programs = 0

    def free_many_programs(self) -> None:
        """Free compiled programs if there are many; for the time between two calls."""
        if self._programs > MOST_PROGRAMS and not self.running:
            self.free_compiled()

    def _count(self, event: str, seconds: float, **_: Any) -> None:
        self._programs += event == _COMPILED

    def guarded(self, size: int, *, gradients: bool, training: bool = True) -> AbstractContextManager[Any]:
        return _Guard(self, self._device, self._wide)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(function)

    def pullback(self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any) -> tuple[Any, list[Any | None]]:
        y, pull = _derivable(jax.vjp, call, *inputs)
        check_like(y, cotangent.shape, _NAMES[cotangent.dtype], self)
        return y, list(_derivable(pull, cotangent))

    def jvp(self, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
        return _derivable(jax.jvp, call, tuple(inputs), tuple(tangents))[1]

    def vjp_vjp(
        self, call: Callable[..., Any], inputs: Sequence[Any], cotangent: Any, second: Sequence[Any]
    ) -> list[Any | None]:
        def gradients(g: Any, *moved: Any) -> list[Any]:
            y, pull = jax.vjp(call, *moved)
            check_like(y, cotangent.shape, _NAMES[cotangent.dtype], self)
            # None means that there is no input, or a cotangent of zero: then there is nothing to differentiate.
            return [one for one, again in zip(pull(g), second) if again is not None]

        _, pull = _derivable(jax.vjp, gradients, cotangent, *inputs)
        g_bar, *bars = _derivable(pull, [again for again in second if again is not None])
        return [*bars, g_bar]

    def nested(
        self, kind: str, call: Callable[..., Any], inputs: Sequence[Any], tangents: Sequence[Any], other: Any
    ) -> list[Any | None]:
        return _derivable(nested, jax.jvp, jax.vjp, kind, call, inputs, tangents, other)

    def view(self, x: Any) -> Any:
        # Arrays never change, and their memory cannot be observed.
        return x

    def buffer(self, value: Any) -> Any:
        return jax.ShapeDtypeStruct(value.shape, value.dtype)

    def write(self, value: Any, buffer: Any) -> Any:
        return value

    def move_axis(self, tensor: Any, source: int, destination: int) -> Any:
        return jax.numpy.moveaxis(tensor, source, destination)


@lru_cache(maxsize=None)
def _device(name: str) -> Any:
    """JAX's device of this name: "cpu", "gpu", "gpu:1". Raises DeviceUnavailable."""
    platform, colon, number = name.partition(":")
    if platform not in _PLATFORMS or (colon and not number.isdecimal()):
        raise DeviceUnavailable(f"jax knows no device {name!r}: use cpu, gpu, gpu:N, cuda, rocm or tpu")
    try:
        found = jax.devices(platform)
    except RuntimeError as error:
        raise DeviceUnavailable(
            f"device {name!r}: jax {jax.__version__} finds no {platform}; install a build for it"
            " (https://docs.jax.dev/en/latest/installation.html) on a machine that has one, or use --device cpu"
        ) from error
    index = int(number or 0)
    if index >= len(found):
        raise DeviceUnavailable(f"device {name!r}: jax finds {len(found)}, the last being {platform}:{len(found) - 1}")
    return found[index]


def _derivable(transform: Callable[..., Any], *arguments: Any) -> Any:
    """Run a transformation. Raises Unsupported if JAX says that the function has no such derivative."""
    try:
        return transform(*arguments)
    except jax.errors.TracerArrayConversionError as error:
        raise Unsupported("it turns its arguments into NumPy arrays, where JAX cannot follow it") from error
    except TypeError as error:
        if _NO_FORWARD_MODE not in str(error):
            raise
        raise Unsupported("it is a jax.custom_vjp, which has no forward mode") from error
    except ValueError as error:
        if not any(words in str(error) for words in _NO_DERIVATIVE):
            raise
        raise Unsupported("it calls back into Python (jax.pure_callback), where JAX cannot follow it") from error
