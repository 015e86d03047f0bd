"""Conventions and known violations of Keras's layers and operations on the active backend, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...spec.layout import Layout
from ...spec.operators import OPERATORS
from ..departures import Departures
from ..known import NESTED_OF_X, Failure, KnownViolation, wrong_second_derivative
from .bridge import BACKEND

SOURCE = "https://github.com/keras-team/keras/blob/master/keras/src/"

_NN = f"{SOURCE}backend/{BACKEND}/nn.py"


# What each backend adds to all bindings ------------------------------------------------------------------

_EVERYWHERE = {
    "float64=float32": (
        "keras.backend.result_type turns float64 into float32 on this backend, as JAX does by default: what takes and"
        f" returns float64 computes in float32; {SOURCE}backend/common/dtypes.py (BIT64_TO_BIT32_DTYPE)"
    )
}
#: For operators that compute no mean: float64 becomes float32 only in means.
_WITHOUT_MEAN = {
    "float64=float64": (
        "no statistics are formed, and keras.ops.add, sigmoid and softmax leave float64 as it is on this backend;"
        f" {_NN}"
    )
}
if BACKEND == "tensorflow":
    _EVERYWHERE = _WITHOUT_MEAN = {}

# Reasons --------------------------------------------------------------------------------------------------

_MOMENTUM = (
    "moving_mean = moving_mean * momentum + mean(batch) * (1 - momentum);"
    " https://keras.io/api/layers/normalization_layers/batch_normalization"
)

_ONE_PASS = f"keras.ops.moments forms the variance as mean(x^2) - mean(x)^2, only on this backend; {_NN} (moments)"

_NATIVE_MOMENTS = (
    "keras.ops.moments returns the mean and the variance in x's dtype, and keras.ops.batch_normalization computes in"
    f" it; {_NN}"
)

_SUM_ROUNDED = f"the layer Add returns x + F(x) in 16 bits to LayerNormalization; {SOURCE}layers/merging/add.py"

_EACH_ROUNDED = (
    "each operation on 16-bit tensors rounds its result to 16 bits: the gate or the weights, every product and every"
    f" sum; {_NN} (sigmoid, softmax)"
)

_NOT_CLAMPED = (
    "the variance, mean(x^2) - mean(x)^2, is not kept from becoming negative: the root is then of less than eps, or of"
    " a negative number, and y is NaN. TensorFlow and JAX were mended"
)
_NOT_CLAMPED_LINKS = (f"{_NN} (moments)", "https://github.com/keras-team/keras/pull/18795")

_SECOND_ORDER = (
    "tf.nn.moments, by which keras.ops.moments is computed, subtracts tf.stop_gradient(mean) in the variance, which"
    " leaves its gradient as it is and not its second derivative"
)
_SECOND_ORDER_LINKS = (
    "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/ops/nn_impl.py (moments)",
)

_BROADCAST = KnownViolation(
    "CM-C6",
    "the tensors are broadcast: Add refuses only another batch size",
    links=(f"{SOURCE}layers/merging/base_merge.py (build)",),
    failures=("accepts",),
)

_BIAS = KnownViolation(
    "CM-S2",
    "what has one axis longer than 1 is taken for a bias and added by tf.nn.bias_add, which raises 'Biases must be 1D'"
    " for an empty batch, of shape (0, n)",
    links=(f"{SOURCE}backend/tensorflow/numpy.py (add)",),
    failures=("raises",),
    outputs=("y",),
)


def _narrowed(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    gamma = inputs["gamma"]
    return gamma is not None and bool((gamma.astype(inputs["x"].dtype) != gamma).any())


_AUTOCAST = tuple(
    KnownViolation(
        "CM-D1",
        "under mixed_float16 and mixed_bfloat16 the float32 scale is cast to 16 bits before it is used, and so is its"
        " gradient: it is made without autocast=False, which the weights of the other normalisations have",
        links=(f"{SOURCE}layers/normalization/rms_normalization.py (build)",),
        failures=("value",),
        outputs=outputs,
        dtypes=("float16", "bfloat16"),
        where=where,
        cases=cases,
    )
    for outputs, where, cases in ((("y", "dx"), "a gamma that 16 bits do not hold", _narrowed), (("dgamma",), "", None))
)

# Bindings -------------------------------------------------------------------------------------------------


def _second_order(*requirements: str, dtypes: tuple[str, ...] = ()) -> tuple[KnownViolation, ...]:
    if BACKEND != "tensorflow":
        return ()
    return wrong_second_derivative(*requirements, reason=_SECOND_ORDER, links=_SECOND_ORDER_LINKS, dtypes=dtypes)


def _negative(operator: str, *requirements: str) -> tuple[KnownViolation, ...]:
    if BACKEND != "torch":
        return ()
    of_batches = OPERATORS[operator].has_modes

    def lost(x: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
        """Which values are in a group whose var + eps is below the rounding error of mean(x^2) - mean(x)^2."""
        layout = Layout.of(operator, x.shape, settings)
        rows = layout.rows(x.astype(np.float64))
        unit = 2.0**-24
        if of_batches:  # the operation rounds to 16 bits
            unit = 2.0**-8 if x.dtype.name == "bfloat16" else 2.0**-11 if x.dtype == np.float16 else unit
        # The sums, their division and the difference: four roundings of a number as large as mean(x^2), and one for
        # each level of the sum.
        levels = 4 + np.log2(max(rows.shape[1], 1))
        found = (rows**2).mean(axis=1) * unit * levels >= rows.var(axis=1) + settings["eps"]
        return layout.back(np.repeat(found[:, None], rows.shape[1], axis=1))

    def predicts(failure: Failure) -> np.ndarray:
        """Which elements of the output are in such a group."""
        assert failure.got is not None
        x = failure.inputs["x"]
        assert x is not None
        found = lost(x, failure.settings)
        if failure.got.ndim == 1 and x.ndim > 1:  # one value per channel
            channel = failure.settings["channel_axis"]
            return np.asarray(np.moveaxis(found, channel, 0).reshape(x.shape[channel], -1).any(axis=1))
        return found

    return tuple(
        KnownViolation(
            one,
            _NOT_CLAMPED,
            links=_NOT_CLAMPED_LINKS,
            modes=("training",) if of_batches else (),
            where=f"a {'channel' if of_batches else 'group'} whose mean is so large that its variance and eps are lost"
            " in the rounding of mean^2",
            cases=lambda inputs, settings: bool(lost(inputs["x"], settings).any()),
            predicts=predicts,
            always=False,  # it shows only if the variance is rounded in one direction
        )
        for one in requirements
    )


#: The dtypes for operators whose accuracy class of 16-bit data hides the violation.
_WIDE = ("float32", "float64")
_MOMENTS = {"variance_algorithm=one-pass": _ONE_PASS} if BACKEND == "torch" else {}
_NEGATIVE = _negative("batch_norm", "BN-F1", "BN-G1", "BN-G2")

_ADDED = (_BROADCAST, *((_BIAS,) if BACKEND == "tensorflow" else ()))

#: On PyTorch, LayerNormalization is torch.nn.functional.layer_norm, including its derivatives.
_TANGENT = {
    operator: tuple(
        KnownViolation(
            requirement,
            "layer_norm of PyTorch writes the tangent of y in the saved mean and 1/sqrt(var + eps); its derivative"
            " takes these for constants",
            links=("https://github.com/pytorch/pytorch/issues/196700",),
            failures=("value",),
            outputs=(output,),
        )
        for requirement, output in zip(requirements, NESTED_OF_X[1:])
        if BACKEND == "torch"
    )
    for operator, requirements in {
        "layer_norm": ("LN-G13", "LN-G14"),
        "pre_norm": ("PR-G9", "PR-G10"),
        "post_norm": ("PO-G9", "PO-G10"),
    }.items()
}

LAYER_NORM = Departures(
    _EVERYWHERE, known_violations=(*_second_order("LN-G9", "LN-G12", "LN-G13", "LN-G14"), *_TANGENT["layer_norm"])
)
BATCH_NORM = Departures(
    {**_EVERYWHERE, "momentum=old": _MOMENTUM, **_MOMENTS},
    known_violations=(*_NEGATIVE, *_second_order("BN-G10", "BN-G13", "BN-G14", "BN-G15")),
)
_CLIPPED = KnownViolation(
    "CM-N4",
    "keras.ops.moments computes 16-bit data in float32, and clips the mean and the variance to the range of float16,"
    " bfloat16's too, before it returns them: an infinite mean becomes 65504",
    links=(f"{_NN} (moments)",),
    failures=("value",),
    outputs=("new_running_mean", "new_running_var"),
    dtypes=("float16",) if BACKEND == "torch" else ("float16", "bfloat16"),
    modes=("training",),
)
OPS_BATCH_NORM = Departures(
    {**_EVERYWHERE, "storage=native": _NATIVE_MOMENTS, **_MOMENTS},
    known_violations=(*_NEGATIVE, _CLIPPED, *_second_order("BN-G10", "BN-G13", "BN-G14", "BN-G15", dtypes=_WIDE)),
)
RMS_NORM = Departures(_EVERYWHERE, known_violations=_AUTOCAST)
OPS_RMS_NORM = Departures(_EVERYWHERE)
GROUP_NORM = Departures(
    {**_EVERYWHERE, **_MOMENTS},
    known_violations=(
        *_negative("group_norm", "GN-F1", "GN-G1", "GN-G2"),
        *_second_order("GN-G9", "GN-G12", "GN-G13", "GN-G14"),
    ),
)
INSTANCE_NORM = Departures(
    {**_EVERYWHERE, **_MOMENTS},
    known_violations=(
        *_negative("instance_norm", "IN-F1", "IN-G1", "IN-G2"),
        *_second_order("IN-G9", "IN-G12", "IN-G13", "IN-G14"),
    ),
)
RESIDUAL = Departures(_WITHOUT_MEAN, known_violations=_ADDED)
PRE_NORM = Departures(
    _EVERYWHERE,
    known_violations=(
        *_ADDED,
        *_second_order("PR-G6", "PR-G8", "PR-G9", "PR-G10", dtypes=_WIDE),
        *_TANGENT["pre_norm"],
    ),
)
POST_NORM = Departures(
    {**_EVERYWHERE, "storage=H1": _SUM_ROUNDED},
    known_violations=(
        *_ADDED,
        *_second_order("PO-G6", "PO-G8", "PO-G9", "PO-G10", dtypes=_WIDE),
        *_TANGENT["post_norm"],
    ),
)
HIGHWAY = MHC = Departures({**_WITHOUT_MEAN, "storage=native": _EACH_ROUNDED}, known_violations=(_BROADCAST,))
