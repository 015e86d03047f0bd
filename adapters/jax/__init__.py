"""JAX's own functions, what its users compose of them, and the bridge for one's own functions on its arrays."""

from __future__ import annotations

from ..target import Target
from . import composed, layers
from .bridge import JaxBridge

BRIDGE = JaxBridge()


def target() -> Target:
    """JAX as it is installed."""
    return Target("jax", "jax", BRIDGE.version, BRIDGE, (*layers.BINDINGS, *composed.BINDINGS))
