"""What Keras's layers and operations follow and violate on the active backend, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .bridge import BACKEND

SOURCE = "https://github.com/keras-team/keras/blob/master/keras/src/"

_NN = f"{SOURCE}backend/{BACKEND}/nn.py"


@dataclass(frozen=True)
class Declared:
    """What a binding declares: each convention with its reason, and what it is known to violate."""

    conventions: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)


def _declared(*facts: tuple[str, str], **expected: str) -> Declared:
    """Conventions written as KEY=VALUE, each with its reason; requirement ids with an underscore for the hyphen."""
    pairs = [(fact.partition("="), reason) for fact, reason in facts]
    return Declared(
        {key: value for (key, _, value), _ in pairs},
        {key: reason for (key, _, _), reason in pairs},
        {name.replace("_", "-"): reason for name, reason in expected.items()},
    )


# Reasons --------------------------------------------------------------------------------------------------

_MOMENTUM = (
    "momentum=old",
    "moving_mean = moving_mean * momentum + mean(batch) * (1 - momentum);"
    " https://keras.io/api/layers/normalization_layers/batch_normalization",
)

_ONE_PASS = (
    "variance_algorithm=one-pass",
    f"keras.ops.moments forms the variance as mean(x^2) - mean(x)^2, on this backend alone; {_NN} (moments)",
)

_NATIVE_MOMENTS = (
    "storage=native",
    "keras.ops.moments returns the mean and the variance in x's dtype, and keras.ops.batch_normalization computes in"
    f" it; {_NN}",
)

_SUM_ROUNDED = (
    "storage=H1",
    f"the layer Add returns x + F(x) in 16 bits to LayerNormalization; {SOURCE}layers/merging/add.py",
)

_EACH_ROUNDED = (
    "storage=native",
    "each operation on 16-bit tensors rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {_NN} (sigmoid, softmax)",
)

_NOT_CLAMPED = (
    "the variance, mean(x^2) - mean(x)^2, is not kept from becoming negative: the root is then of less than eps, or of"
    f" a negative number, and y is NaN; {_NN} (moments). TensorFlow and JAX were mended:"
    " https://github.com/keras-team/keras/pull/18795"
)

_SECOND_ORDER = (
    "tf.nn.moments, by which keras.ops.moments is computed, subtracts tf.stop_gradient(mean) in the variance, which"
    " leaves its gradient as it is and not its second derivative;"
    " https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/ops/nn_impl.py (moments)"
)

_BROADCAST = (
    f"the tensors are broadcast: Add refuses another batch size alone; {SOURCE}layers/merging/base_merge.py (build)"
)

_BIAS = (
    "what has one axis longer than 1 is taken for a bias and added by tf.nn.bias_add, which raises 'Biases must be 1D'"
    f" for an empty batch, of shape (0, n); {SOURCE}backend/tensorflow/numpy.py (add)"
)

# Bindings -------------------------------------------------------------------------------------------------


def _second_order(requirement: str) -> dict[str, str]:
    return {requirement: _SECOND_ORDER} if BACKEND == "tensorflow" else {}


_MOMENTS = (_ONE_PASS,) if BACKEND == "torch" else ()
_NEGATIVE = dict.fromkeys(("BN_F1", "BN_G1", "BN_G2"), _NOT_CLAMPED) if BACKEND == "torch" else {}

_ADDED = {"CM_C6": _BROADCAST, **({"CM_S2": _BIAS} if BACKEND == "tensorflow" else {})}

LAYER_NORM = _declared(**_second_order("LN_G9"))
BATCH_NORM = _declared(_MOMENTUM, *_MOMENTS, **_NEGATIVE, **_second_order("BN_G10"))
OPS_BATCH_NORM = _declared(
    _NATIVE_MOMENTS,
    *_MOMENTS,
    **_NEGATIVE,
    **_second_order("BN_G10"),
)
RESIDUAL = _declared(**_ADDED)
PRE_NORM = _declared(**_ADDED, **_second_order("PR_G6"))
POST_NORM = _declared(_SUM_ROUNDED, **_ADDED, **_second_order("PO_G6"))
HIGHWAY = _declared(_EACH_ROUNDED, CM_C6=_BROADCAST)
MHC = _declared(_EACH_ROUNDED, CM_C6=_BROADCAST)
