"""ONNX's normalisations in ONNX Runtime and in onnx's own reference, on NumPy arrays and forward only."""

from __future__ import annotations

import onnx

from ..target import Target
from .bindings import bindings_of
from .bridge import OnnxBridge

BRIDGE = OnnxBridge()


def target() -> Target:
    """ONNX Runtime on the CPU; it is imported here because onnx's own reference does not need it."""
    import onnxruntime

    from .runtime import RUNTIME

    return Target("onnxruntime", "onnx", onnxruntime.__version__, BRIDGE, bindings_of(RUNTIME))


def reference_target() -> Target:
    """The reference evaluator of onnx itself."""
    from .evaluator import EVALUATOR

    return Target("onnx-reference", "onnx", onnx.__version__, BRIDGE, bindings_of(EVALUATOR))
