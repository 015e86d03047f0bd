"""The bridge for ONNX: outside a graph its tensors are NumPy arrays, without derivatives."""

from __future__ import annotations

import onnx

from ...spec.errors import DeviceUnavailable
from ..numpy.bridge import NumpyBridge


class OnnxBridge(NumpyBridge):
    """NumPy arrays; both evaluators take and return them."""

    name = "onnx"
    version = onnx.__version__

    def check_device(self, device: str) -> None:
        if device != "cpu":
            raise DeviceUnavailable(f"normspec drives ONNX on the CPU alone, not on {device!r}: leave --device out")
