"""Keras on the backend that is active, which KERAS_BACKEND names: its layers, its operations, and blocks of them."""

from __future__ import annotations

from ..target import Target
from . import composed, layers, operations
from .bridge import BACKEND, KerasBridge
from .own_layers import KerasKit

BRIDGE = KerasBridge()

#: The layers of one's own on its tensors.
KITS = (KerasKit(BRIDGE),)


def target() -> Target:
    """Keras as it is installed, on the active backend, after which the target is named: ``keras[torch]``."""
    bindings = (*layers.BINDINGS, *operations.BINDINGS, *composed.BINDINGS)
    return Target(f"keras[{BACKEND}]", "keras", BRIDGE.version, BRIDGE, bindings)
