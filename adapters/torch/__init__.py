"""PyTorch's own normalisation layers, and the bridge for one's own functions on its tensors."""

from __future__ import annotations

from ..binding import Target
from .bridge import TorchBridge
from .layers import BINDINGS

BRIDGE = TorchBridge()


def target() -> Target:
    """PyTorch as it is installed."""
    return Target("torch", "torch", BRIDGE.version, BRIDGE, BINDINGS)
