"""Flax's layers in both of its interfaces, nnx and linen; its tensors are JAX's."""

from __future__ import annotations

from importlib.metadata import version

from ..jax import BRIDGE
from ..target import Target
from . import composed, linen_layers, nnx_layers

__all__ = ["BRIDGE", "target"]


def target() -> Target:
    """Flax as it is installed."""
    bindings = (*nnx_layers.BINDINGS, *linen_layers.BINDINGS, *composed.BINDINGS)
    return Target("flax", "jax", version("flax"), BRIDGE, bindings)
