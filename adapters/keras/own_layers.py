"""
Users' layers on Keras: built for the shape of x, and lent their variables for each call.

A layer computes in the dtype it is made with, so for each other dtype a new layer is made from its configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras

from ...spec.errors import Unsupported, one_line
from ..layers.kit import Kit, LayerTensor
from .bridge import KerasBridge
from .layers import BINDINGS, policy


class KerasKit(Kit):
    """Layers that are keras.layers.Layers."""

    framework = "keras"
    channel_axis = -1
    old_momentum = True
    builds = True
    base = keras.layers.Layer
    home = "keras."
    method = "call"
    bindings = BINDINGS

    def __init__(self, bridge: KerasBridge) -> None:
        self.bridge = bridge
        #: New layers by the original's id and the dtype; the original is kept, so that no other layer gets its id.
        self._anew: dict[tuple[int, str], tuple[Any, Any]] = {}

    def within(self, layer: Any) -> dict[str, Any]:
        found = {"": layer}
        for one in layer._flatten_layers(include_self=False):
            found.setdefault(_dotted(one.path or one.name), one)
        return found

    def tensors(self, layer: Any) -> dict[str, LayerTensor]:
        trained = {id(one) for one in layer.trainable_weights}
        return {_dotted(one.path): LayerTensor(tuple(one.shape), id(one) in trained) for one in layer.weights}

    def maker(self, layer: Any) -> Callable[[], Any] | None:
        return None if layer.built else lambda: type(layer).from_config(layer.get_config())

    def built(self, layer: Any, shape: tuple[int | None, ...]) -> Any:
        if not layer.built:
            layer.build(shape)
        return layer

    def axis_of(self, layer: Any) -> int:
        axis = getattr(layer, "axis", self.channel_axis)
        return axis if isinstance(axis, int) else self.channel_axis

    def ready(self, layer: Any, x: Any, lent: Mapping[str, Any]) -> Any:
        dtype = policy(x, *lent.values())
        if layer.dtype_policy.name == dtype:
            return layer
        key = (id(layer), dtype)
        if key not in self._anew:
            try:
                anew = type(layer).from_config({**layer.get_config(), "dtype": dtype})
                anew.build_from_config(layer.get_build_config())
            except Exception as error:
                raise Unsupported(
                    f"it computes in {layer.dtype_policy.name} and cannot be made anew in {dtype}: {one_line(error)}"
                ) from error
            self._anew[key] = (anew, layer)
        return self._anew[key][0]

    def run(
        self, layer: Any, lent: Mapping[str, Any], x: Any, *, training: bool, sample: int
    ) -> tuple[Any, Mapping[str, Any]]:
        del sample
        # A new layer's variables may have other names, in the same order.
        names = self._names(layer, lent)
        own = dict(zip(names, layer.weights))
        with keras.StatelessScope([(own[name], value) for name, value in lent.items()]) as scope:
            y = layer(x, training=training) if layer._call_has_training_arg else layer(x)
        return y, {name: scope.get_current_value(own[name]) for name in lent}

    def _names(self, layer: Any, lent: Mapping[str, Any]) -> list[str]:
        """The names of a layer's variables; for a new layer, the original's names, which ``lent`` uses."""
        names = list(self.tensors(layer))
        if all(name in names for name in lent):
            return names
        first = next(first for anew, first in self._anew.values() if anew is layer)
        return list(self.tensors(first))

    def reshaped(self, tensor: Any, shape: tuple[int, ...]) -> Any:
        return keras.ops.reshape(tensor, shape)

    def names_of(self, kind: type, owner: Any) -> tuple[str, ...]:
        return (f"keras.layers.{kind.__name__}", f"keras.layers.{kind.__name__}(groups=-1)")


def _dotted(path: str) -> str:
    return path.replace("/", ".")
