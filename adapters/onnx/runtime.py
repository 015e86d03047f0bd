"""ONNX Runtime on the CPU: sessions, one for each node that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnxruntime

from .bindings import Evaluator
from .models import Node, model

#: Neither the graph nor what is in it is worth a word on stderr: what fails is raised.
_FATAL = 4


@lru_cache(maxsize=512)
def _session(node: Node) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # One node on small arrays: a pool of threads for each session would cost more than all of its work.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    return onnxruntime.InferenceSession(model(node).SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(node: Node, arrays: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
    return _session(node).run(None, dict(arrays))


RUNTIME = Evaluator("onnxruntime", _run)
