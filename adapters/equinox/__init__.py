"""Equinox's layers; Equinox's tensors are JAX's."""

from __future__ import annotations

from importlib.metadata import version

from ..jax import BRIDGE
from ..target import Target
from . import composed, layers
from .own_layers import EquinoxKit

__all__ = ["BRIDGE", "KITS", "target"]

#: The kit for users' layers.
KITS = (EquinoxKit(BRIDGE),)


def target() -> Target:
    """The installed Equinox as a target."""
    return Target("equinox", "jax", version("equinox"), BRIDGE, (*layers.BINDINGS, *composed.BINDINGS))
