"""What TensorFlow's users normalise with and compose, and the bridge for one's own functions on its tensors."""

from __future__ import annotations

import os

# Its log of what the CPU can do is written while it is imported, and later only to the process's own stderr.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from ..target import Target
from . import composed, fused, moments
from .bridge import TensorFlowBridge

BRIDGE = TensorFlowBridge()


def target() -> Target:
    """TensorFlow as it is installed."""
    bindings = (*moments.BINDINGS, *fused.BINDINGS, *composed.BINDINGS)
    return Target("tensorflow", "tensorflow", BRIDGE.version, BRIDGE, bindings)
