"""Users' layers on flax.nnx: merged for each call with the lent parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from flax import nnx

from ...spec.errors import Unsupported
from ..jax.own_layers import MODES, in_held_dtype, mode_arguments
from ..layers.kit import LayerTensor
from .nnx_layers import BINDINGS
from .own_layers import FlaxKit, dotted


class NnxKit(FlaxKit):
    """Layers that are flax.nnx.Modules."""

    base = nnx.Module
    home = "flax.nnx.nn.normalization"
    interface = "flax.nnx"
    bindings = BINDINGS

    def handed(self, dtype: str) -> Mapping[str, Any]:
        return {"rngs": nnx.Rngs(0), "dtype": jnp.dtype(dtype)}

    def within(self, layer: Any) -> dict[str, Any]:
        return {dotted(path): module for path, module in sorted(nnx.iter_modules(layer), key=lambda one: len(one[0]))}

    def tensors(self, layer: Any) -> dict[str, LayerTensor]:
        return {
            dotted(path): LayerTensor(tuple(variable.shape), isinstance(variable, nnx.Param))
            for path, variable in _variables(layer)
            if not isinstance(variable, nnx.RngState)
        }

    def applied(
        self, layer: Any, lent: Mapping[str, Any], x: Any, training: bool, sample: int
    ) -> tuple[Any, dict[str, Any]]:
        del sample
        own = {dotted(path): variable for path, variable in _variables(layer)}
        values = {
            name: value if isinstance(own[name], nnx.Param) else in_held_dtype(value) for name, value in lent.items()
        }
        # New variables; otherwise the merged module would share the layer's own.
        state = [
            (path, one.copy(values[dotted(path)]) if dotted(path) in values else one.copy())
            for path, one in _variables(layer)
        ]
        merged: Any = nnx.merge(nnx.graphdef(layer), nnx.from_flat_state(state))
        attributes = {name: value is training for name, value in MODES.items() if name != "train"}  # train is a method
        merged.set_attributes(raise_if_not_found=False, **attributes)
        y = merged(x, **mode_arguments(type(merged).__call__, training=training))
        widened = any(values[name].dtype != value.dtype for name, value in lent.items())
        if widened and getattr(y, "dtype", None) != x.dtype and self._widens(layer):
            raise Unsupported("its statistics are float32, and without dtype= so is what it computes")
        after = {dotted(path): variable[...] for path, variable in _variables(merged)}
        return y, {name: after[name].astype(value.dtype) for name, value in lent.items()}

    def _widens(self, layer: Any) -> bool:
        """Whether a layer contains Flax's BatchNorm without dtype, which computes in the widest dtype it holds."""
        return any(isinstance(one, nnx.BatchNorm) and one.dtype is None for one in self.within(layer).values())


def _variables(layer: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """The variables of a layer, with their paths."""
    return list(nnx.to_flat_state(nnx.state(layer)))
