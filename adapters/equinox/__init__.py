"""Equinox's layers; its tensors are JAX's."""

from __future__ import annotations

from importlib.metadata import version

from ..jax import BRIDGE
from ..target import Target
from . import composed, layers
from .own_layers import EquinoxKit

__all__ = ["BRIDGE", "KITS", "target"]

#: The layers of one's own.
KITS = (EquinoxKit(BRIDGE),)


def target() -> Target:
    """Equinox as it is installed."""
    return Target("equinox", "jax", version("equinox"), BRIDGE, (*layers.BINDINGS, *composed.BINDINGS))
