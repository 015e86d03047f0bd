"""Flax's layers in both interfaces, nnx and linen; Flax's tensors are JAX's."""

from __future__ import annotations

from importlib.metadata import version

from ..jax import BRIDGE
from ..target import Target
from . import composed, linen_layers, nnx_layers
from .own_linen_layers import LinenKit
from .own_nnx_layers import NnxKit

__all__ = ["BRIDGE", "KITS", "target"]

#: The kits for users' layers, one for each interface.
KITS = (NnxKit(BRIDGE), LinenKit(BRIDGE))


def target() -> Target:
    """The installed Flax as a target."""
    bindings = (*nnx_layers.BINDINGS, *linen_layers.BINDINGS, *composed.BINDINGS)
    return Target("flax", "jax", version("flax"), BRIDGE, bindings)
