"""Keras on the backend that is active, which KERAS_BACKEND names: its layers, its operations, and blocks of them."""

from __future__ import annotations

from ..binding import Target
from . import composed, layers, operations
from .bridge import BACKEND, KerasBridge

BRIDGE = KerasBridge()

#: What Keras has no float64 on: keras.backend.result_type turns it into float32 on every backend but TensorFlow, "to
#: be aligned with JAX's default behavior", and so LayerNormalization and BatchNormalization take float64, compute in
#: float32 and return float64. https://github.com/keras-team/keras/blob/master/keras/src/backend/common/dtypes.py
#: (BIT64_TO_BIT32_DTYPE)
_DTYPES = () if BACKEND == "tensorflow" else tuple(dtype for dtype in BRIDGE.dtypes if dtype != "float64")


def target() -> Target:
    """Keras as it is installed, on the active backend, after which the target is named: ``keras[torch]``."""
    bindings = (*layers.BINDINGS, *operations.BINDINGS, *composed.BINDINGS)
    return Target(f"keras[{BACKEND}]", "keras", BRIDGE.version, BRIDGE, bindings, _DTYPES)
