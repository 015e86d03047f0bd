"""PyTorch's own layers, operators composed of its functions, and the bridge for users' functions on its tensors."""

from __future__ import annotations

from ..target import Target
from . import bert, composed, encoder_layer, group_norm, layers, rms_norm, rms_norm_transformers
from .bridge import TorchBridge
from .own_layers import TorchKit

BRIDGE = TorchBridge()

#: The kit for users' layers on PyTorch.
KITS = (TorchKit(BRIDGE),)


def target() -> Target:
    """The installed PyTorch as a target, with the layers of ``transformers`` if that is installed."""
    own = (*layers.BINDINGS, *rms_norm.BINDINGS, *group_norm.BINDINGS, *composed.BINDINGS, *encoder_layer.BINDINGS)
    bindings = (*own, *rms_norm_transformers.bindings(), *bert.bindings())
    return Target("torch", "torch", BRIDGE.version, BRIDGE, bindings)
