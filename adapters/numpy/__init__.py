"""The built-in NumPy target, and the bridge for users' functions on NumPy arrays."""

from __future__ import annotations

from ..target import Target
from .bindings import BINDINGS
from .bridge import NumpyBridge

BRIDGE = NumpyBridge()


def target() -> Target:
    """The built-in target, for the two dtypes that NumPy computes in natively."""
    return Target("numpy", "numpy", BRIDGE.version, BRIDGE, BINDINGS, dtypes=("float32", "float64"))
