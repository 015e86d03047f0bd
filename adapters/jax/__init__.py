"""JAX's own functions, operators composed of them, and the bridge for users' functions on its arrays."""

from __future__ import annotations

from ..target import Target
from . import composed, layers
from .bridge import JaxBridge

BRIDGE = JaxBridge()


def target() -> Target:
    """The installed JAX as a target."""
    return Target("jax", "jax", BRIDGE.version, BRIDGE, (*layers.BINDINGS, *composed.BINDINGS))
