"""Layers of a user's own on JAX, whichever library they are written with: called without side effects, and compiled."""

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

#: What layers call the argument, or the attribute, that says whether they are trained, and what it is then.
MODES: Mapping[str, bool] = {
    "training": True, "train": True, "is_training": True,
    "use_running_average": False, "deterministic": False, "inference": False,
}  # fmt: skip

#: What JAX raises of a function that asks for a value while it is compiled.
_NEEDS_VALUES = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)


class JaxKit(Kit):
    """Layers on JAX's arrays. Each is compiled as a whole, as its library's documentation advises."""

    framework = "jax"

    def __init__(self, bridge: JaxBridge) -> None:
        self.bridge = bridge
        #: The calls of a layer, by its id; the layer is kept, so that its id stays its own.
        self._calls: dict[Any, tuple[Any, Callable[..., Any]]] = {}

    @abc.abstractmethod
    def applied(
        self, layer: Any, lent: Mapping[str, Any], x: Any, training: bool, sample: int
    ) -> tuple[Any, dict[str, Any]]:
        """What `run` returns, nothing but what was lent afterwards; nothing that a layer holds is changed."""

    def making(self) -> AbstractContextManager[Any]:
        # What a layer is made with outlives the transformation that is under way.
        return jax.ensure_compile_time_eval()

    def placed(self, layer: Any, device: str) -> Any:
        del device  # its parameters are lent, wherever those are
        return layer

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
        except _NEEDS_VALUES:  # it branches on values, and can be called an operation at a time alone
            self._calls[key] = layer, lambda x, lent: self.applied(layer, lent, x, training, sample)
            return self._calls[key][1](x, dict(lent))


def modes(function: Callable[..., Any], *, training: bool) -> dict[str, bool]:
    """Those of a function's arguments that say whether it is trained, as they are then, or in inference."""
    taken = inspect.signature(function).parameters
    return {name: value is training for name, value in MODES.items() if name in taken}


def held(statistic: Any) -> Any:
    """A statistic as layers hold it: those of 16-bit data in float32."""
    return statistic.astype(jnp.promote_types(statistic.dtype, jnp.float32))
