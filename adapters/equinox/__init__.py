"""Equinox's layers; its tensors are JAX's."""

from __future__ import annotations

from importlib.metadata import version

from ..jax import BRIDGE
from ..target import Target
from . import composed, layers

__all__ = ["BRIDGE", "target"]


def target() -> Target:
    """Equinox as it is installed."""
    return Target("equinox", "jax", version("equinox"), BRIDGE, (*layers.BINDINGS, *composed.BINDINGS))
