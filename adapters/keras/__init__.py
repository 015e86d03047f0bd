"""Keras on the active backend, set by KERAS_BACKEND: its layers, its operations, and blocks built of them."""

from __future__ import annotations

from ..target import Target
from . import composed, layers, operations
from .bridge import BACKEND, KerasBridge
from .own_layers import KerasKit

BRIDGE = KerasBridge()

#: The kit for users' layers.
KITS = (KerasKit(BRIDGE),)


def target() -> Target:
    """The installed Keras as a target, named after the active backend: ``keras[torch]``."""
    bindings = (*layers.BINDINGS, *operations.BINDINGS, *composed.BINDINGS)
    return Target(f"keras[{BACKEND}]", "keras", BRIDGE.version, BRIDGE, bindings)
