"""
Models with one node: a normalisation in its latest version.

Every axis has a symbolic size, so that one model works for all shapes of a rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..dtypes import NAMES

#: For each operator, the opset of its latest version and the file format version of that opset; every later runtime
#: reads them.
_VERSIONS = {
    "LayerNormalization": (17, 8),
    "BatchNormalization": (17, 8),  # BatchNormalization's version 15
    "GroupNormalization": (21, 10),
    "InstanceNormalization": (22, 10),
    "RMSNormalization": (23, 11),
}

_TYPES = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}


@dataclass(frozen=True)
class Node:
    """The description of a model: everything in a call's tensors and settings except values and sizes."""

    operator: str
    #: For each input in the operator's order, its name, dtype name and rank.
    inputs: tuple[tuple[str, str, int], ...]
    #: The same for each output.
    outputs: tuple[tuple[str, str, int], ...]
    attributes: tuple[tuple[str, Any], ...]


def described(name: str, array: np.ndarray) -> tuple[str, str, int]:
    """The entry in a :class:`Node` for an input or output with this array's dtype and rank."""
    return name, NAMES[array.dtype], array.ndim


def model(node: Node) -> onnx.ModelProto:
    """The model of a node."""
    inputs, outputs = (
        [
            helper.make_tensor_value_info(name, _TYPES[dtype], [f"{name}_{axis}" for axis in range(rank)])
            for name, dtype, rank in entries
        ]
        for entries in (node.inputs, node.outputs)
    )
    operation = helper.make_node(
        node.operator, [one[0] for one in node.inputs], [one[0] for one in node.outputs], **dict(node.attributes)
    )
    graph = helper.make_graph([operation], node.operator, inputs, outputs)
    opset, ir = _VERSIONS[node.operator]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
