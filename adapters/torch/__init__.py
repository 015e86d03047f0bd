"""PyTorch's own layers, what its users compose of them, and the bridge for one's own functions on its tensors."""

from __future__ import annotations

from ..target import Target
from . import bert, composed, encoder_layer, group_norm, layers, rms_norm, rms_norm_transformers
from .bridge import TorchBridge
from .own_layers import TorchKit

BRIDGE = TorchBridge()

#: The layers of one's own on its tensors.
KITS = (TorchKit(BRIDGE),)


def target() -> Target:
    """PyTorch as it is installed, and beside it the layers of ``transformers`` where that is."""
    own = (*layers.BINDINGS, *rms_norm.BINDINGS, *group_norm.BINDINGS, *composed.BINDINGS, *encoder_layer.BINDINGS)
    bindings = (*own, *rms_norm_transformers.bindings(), *bert.bindings())
    return Target("torch", "torch", BRIDGE.version, BRIDGE, bindings)
