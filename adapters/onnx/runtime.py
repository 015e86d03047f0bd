"""ONNX Runtime on the CPU: one session for each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnxruntime

from .bindings import Evaluator
from .models import Node, model

#: The log level for fatal errors only: failures are raised, so warnings on stderr would add nothing.
_FATAL = 4


@lru_cache(maxsize=512)
def _session(node: Node) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # One node on small arrays: a thread pool for each session would cost more than its work.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    return onnxruntime.InferenceSession(model(node).SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(node: Node, arrays: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
    return _session(node).run(None, dict(arrays))


RUNTIME = Evaluator("onnxruntime", _run)
