"""MXNet's own layers, what its users compose of them, and the bridge for one's own functions on its arrays."""

from __future__ import annotations

from ..target import Target
from . import composed, group_norms, layers
from .bridge import MxnetBridge

BRIDGE = MxnetBridge()


def target() -> Target:
    """MXNet as it is installed."""
    return Target(
        "mxnet", "mxnet", BRIDGE.version, BRIDGE, (*layers.BINDINGS, *group_norms.BINDINGS, *composed.BINDINGS)
    )
