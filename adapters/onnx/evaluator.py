"""onnx.reference: the NumPy evaluator in the onnx package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from onnx.reference import ReferenceEvaluator

from ..departures import Departures
from ..known import Failure, KnownViolation, Predicted
from .bindings import Evaluator
from .models import Node, model


@lru_cache(maxsize=512)
def _evaluator(node: Node) -> ReferenceEvaluator:
    return ReferenceEvaluator(model(node))


def _run(node: Node, arrays: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
    return _evaluator(node).run(None, dict(arrays))


_OPS = "https://github.com/onnx/onnx/blob/main/onnx/reference/ops/"


def _rounded_parameters(failure: Failure) -> Predicted:
    """The elements that rounding gamma and beta to the dtype of X explains."""
    assert failure.got is not None and failure.expected is not None and failure.envelope is not None
    x, beta = failure.inputs["x"], failure.inputs["beta"]
    assert x is not None
    shape = [1] * x.ndim
    shape[failure.settings["channel_axis"]] = -1
    shift = 0.0 if beta is None else np.asarray(beta, np.float64).reshape(shape)
    unit = 2.0**-11 if x.dtype == np.float16 else 2.0**-8
    # One more rounding of either; their products with the other roundings are below a hundredth of that.
    rounding = 1.01 * unit * (np.abs(failure.expected - shift) + np.abs(shift))
    return np.abs(failure.got - failure.expected) <= failure.envelope + rounding


#: 16-bit data is computed in 16 bits throughout, or in group_norm rounded before the gain.
_DEPARTURES = {
    "layer_norm": Departures(
        {
            "storage=native": (
                "every step is computed in the dtype of X, although stash_type=1 asks for the statistics in float32:"
                " mended after 1.23.2 by https://github.com/onnx/onnx/pull/8439;"
                f" {_OPS}op_layer_normalization.py"
            )
        }
    ),
    "batch_norm": Departures(
        {
            "storage=native": (
                "the variance, the normalised value and the moving average are computed in the dtype of X;"
                f" {_OPS}op_batch_normalization.py"
            )
        },
        known_violations=(
            KnownViolation(
                "CM-D3",
                "running_mean and running_var are cast to the dtype of X, where the operator gives them that of"
                " input_mean and input_var: float16 in place of float32",
                links=(_OPS + "op_batch_normalization.py",),
                failures=("dtype",),
                outputs=("new_running_mean", "new_running_var"),
                dtypes=("float16", "bfloat16"),
                modes=("training",),
            ),
        ),
    ),
    "rms_norm": Departures(
        {
            "storage=native": (
                "every step is computed in the dtype of X, although stash_type=1 asks for the first stage in float32;"
                f" {_OPS}op_rms_normalization.py"
            )
        }
    ),
    "instance_norm": Departures(
        {"storage=native": f"every step is computed in the dtype of X; {_OPS}op_instance_normalization.py"}
    ),
    # The evaluator runs the function that defines the operator.
    "group_norm": Departures(
        {
            "storage=H1": (
                "the first stage is float32 by stash_type=1, the second has the dtype of X;"
                " https://onnx.ai/onnx/operators/onnx__GroupNormalization.html"
            )
        },
        known_violations=(
            KnownViolation(
                "CM-D1",
                "the function that defines it casts scale and bias to the dtype of X, float32 ones too",
                links=("https://github.com/onnx/onnx/blob/main/onnx/defs/nn/defs.cc (GroupNormalization)",),
                failures=("value",),
                outputs=("y",),
                dtypes=("float16", "bfloat16"),
                predicts=_rounded_parameters,
                always=False,
            ),
        ),
    ),
}

EVALUATOR = Evaluator("onnx.reference", _run, _DEPARTURES)
