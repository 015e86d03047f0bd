"""PyTorch's own layers, what its users compose of them, and the bridge for one's own functions on its tensors."""

from __future__ import annotations

from ..target import Target
from . import bert, composed, encoder_layer, layers
from .bridge import TorchBridge

BRIDGE = TorchBridge()


def target() -> Target:
    """PyTorch as it is installed, and beside it the blocks of ``transformers`` where that is."""
    bindings = (*layers.BINDINGS, *composed.BINDINGS, *encoder_layer.BINDINGS, *bert.bindings())
    return Target("torch", "torch", BRIDGE.version, BRIDGE, bindings)
