"""Users' layers on JAX, of any library: called without side effects, and compiled."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp

from ..layers.kit import Kit
from .bridge import JaxBridge

#: Usual names of the argument or attribute that sets the mode, each with its value in training.
MODES: Mapping[str, bool] = {
    "training": True, "train": True, "is_training": True,
    "use_running_average": False, "deterministic": False, "inference": False,
}  # fmt: skip

#: JAX's exceptions for a function that needs a value while it is compiled.
_NEEDS_VALUES = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)


class JaxKit(Kit):
    """Layers on JAX's arrays. Each is compiled as a whole, as its library's documentation advises."""

    framework = "jax"

    def __init__(self, bridge: JaxBridge) -> None:
        self.bridge = bridge
        #: The compiled calls by a key that has the layer's id; the layer is kept, so that no other gets its id.
        self._calls: dict[Any, tuple[Any, Callable[..., Any]]] = {}

    @abc.abstractmethod
    def applied(
        self, layer: Any, lent: Mapping[str, Any], x: Any, training: bool, sample: int
    ) -> tuple[Any, dict[str, Any]]:
        """The result of `run`, with only the lent tensors' new values; the layer itself is not changed."""

    def making(self) -> AbstractContextManager[Any]:
        # A layer's values must outlive the transformation in which it is made.
        return jax.ensure_compile_time_eval()

    def reshaped(self, tensor: Any, shape: tuple[int, ...]) -> Any:
        return jnp.reshape(tensor, shape)

    def run(
        self, layer: Any, lent: Mapping[str, Any], x: Any, *, training: bool, sample: int
    ) -> tuple[Any, Mapping[str, Any]]:
        key = (id(layer), training, sample)
        if key not in self._calls:

            def call(x: Any, lent: dict[str, Any]) -> Any:
                return self.applied(layer, lent, x, training, sample)

            self._calls[key] = layer, jax.jit(call)
        try:
            return self._calls[key][1](x, dict(lent))
        except _NEEDS_VALUES:  # it branches on values, so it can only run uncompiled
            self._calls[key] = layer, lambda x, lent: self.applied(layer, lent, x, training, sample)
            return self._calls[key][1](x, dict(lent))


def mode_arguments(function: Callable[..., Any], *, training: bool) -> dict[str, bool]:
    """The function's arguments that set the mode, with their values in training or in inference."""
    taken = inspect.signature(function).parameters
    return {name: value is training for name, value in MODES.items() if name in taken}


def in_held_dtype(statistic: Any) -> Any:
    """A statistic in the dtype in which layers hold it: float32 for 16-bit data."""
    return statistic.astype(jnp.promote_types(statistic.dtype, jnp.float32))
