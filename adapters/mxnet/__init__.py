"""MXNet's own layers, operators composed of its functions, and the bridge for users' functions on its arrays."""

from __future__ import annotations

from ..target import Target
from . import composed, group_norms, layers
from .bridge import MxnetBridge

BRIDGE = MxnetBridge()


def target() -> Target:
    """The installed MXNet as a target."""
    return Target(
        "mxnet", "mxnet", BRIDGE.version, BRIDGE, (*layers.BINDINGS, *group_norms.BINDINGS, *composed.BINDINGS)
    )
