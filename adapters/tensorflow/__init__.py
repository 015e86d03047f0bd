"""TensorFlow's normalisations, operators composed of its functions, and the bridge for users' functions."""

from __future__ import annotations

import os

# While TensorFlow is imported it logs the CPU's features; later such messages go only to the process's own stderr.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from ..target import Target
from . import composed, fused, moments
from .bridge import TensorFlowBridge

BRIDGE = TensorFlowBridge()


def target() -> Target:
    """The installed TensorFlow as a target."""
    bindings = (*moments.BINDINGS, *fused.BINDINGS, *composed.BINDINGS)
    return Target("tensorflow", "tensorflow", BRIDGE.version, BRIDGE, bindings)
