"""
Known violations of PyTorch's instance_norm on the CPU: the channels-last cotangent of one sample is misread.

instance_norm is batch_norm of a view (1, N C, H, W), and its result is viewed as (N, C, H, W) again. If the cotangent
has one sample and is channels-last, the gradient of this second view gives it the strides (C, 1, W C, C). These are
channels-last strides except for the first, which belongs to an axis with one element. batch_norm's backward pass takes
the cotangent for contiguous, and so reads its values in the wrong order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation, Predicted
from .bridge import SOURCE

#: The unit roundoff of each dtype. The prediction is computed in float64 too: in float64 it is as far off as PyTorch's
#: result.
_U = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
#: Half the smallest number of each 16-bit format.
_ETA = {"float16": 2.0**-25, "bfloat16": 2.0**-134}


def _one_sample_channels_last(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether x has one sample with the channels in the last axis, so that the call's cotangent is channels-last."""
    shape = inputs["x"].shape
    return len(shape) in (4, 5) and shape[0] == 1 and settings["channel_axis"] % len(shape) == len(shape) - 1


def _one_sample_channels_first(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether x has one sample with the channels in axis 1, so that a cotangent in another layout may be misread."""
    shape = inputs["x"].shape
    return len(shape) in (4, 5) and shape[0] == 1 and settings["channel_axis"] % len(shape) == 1


def _misread(failure: Failure) -> Predicted:
    """
    Whether each element comes from reading the cotangent's memory as if it were contiguous, with the channels first.

    That memory has the channels last: because x has, or because the cotangent of an x with the channels first was given
    in such a layout.

    Each row holds one channel of n values. The error of x - mean is 2 u of the largest |x|: relative to deviations of
    1/r, that is 2 u |x| r, hence the factor k. The error of a product or quotient is u, and that of a sum of n terms
    n u times the sum of their magnitudes.
    """
    assert failure.got is not None and failure.g is not None
    inputs = failure.inputs
    axis = failure.settings["channel_axis"]
    x, g = (np.moveaxis(np.asarray(one, np.float64), axis, -1) for one in (inputs["x"], failure.g))
    channels = x.shape[-1]
    rows = x.reshape(-1, channels).T
    g = g.reshape(channels, -1)  # misread: the right shape is (positions, channels)
    dtype = np.asarray(inputs["x"]).dtype.name
    u, eta, n = _U[dtype], _ETA.get(dtype, 0.0), rows.shape[1]
    gamma = inputs["gamma"]
    w = np.ones((channels, 1)) if gamma is None else np.asarray(gamma, np.float64).reshape(-1, 1)
    d = rows - rows.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(axis=1, keepdims=True) + failure.settings["eps"])
    xhat = d * r
    k = 1 + 2 * np.abs(rows).max(axis=1, keepdims=True) * r
    along, size = (g * xhat).sum(axis=1, keepdims=True), (np.abs(g * xhat)).sum(axis=1, keepdims=True)
    off = (2 * n + 16) * u
    if failure.output == "dbeta":
        predicted, bound = g.sum(axis=1), off * np.abs(g).sum(axis=1) + eta
    elif failure.output == "dgamma":
        # The rounding of an element of xhat may be large even if the element is small.
        predicted, bound = along[:, 0], (off * k * (size + np.abs(g).sum(axis=1, keepdims=True)))[:, 0] + eta
    else:
        mean = g.mean(axis=1, keepdims=True)
        terms = np.abs(g) + np.abs(g).mean(axis=1, keepdims=True) + (np.abs(xhat) + 1) * (size / n + np.abs(mean))
        values = w * r * (g - mean - xhat * along / n)
        predicted = np.moveaxis(values.T.reshape(x.shape), -1, axis)
        bound = np.moveaxis((np.abs(w) * r * off * k * terms).T.reshape(x.shape), -1, axis) + eta
    return np.abs(failure.got - predicted) <= bound


#: Layouts of a cotangent in which the channels lie last in memory; "transposed" is one where an axis has one position.
_CHANNELS_LAST = tuple(f"{which} {layout}" for which in ("cotangent", "x and cotangent") for layout in (
    "channels_last", "transposed",
))  # fmt: skip


def _entry(requirement: str, output: str, **limits: Any) -> KnownViolation:
    return KnownViolation(
        requirement,
        "the cotangent of one sample whose channels lie last in memory (channels_last, channels_last_3d) is read as if"
        " it were contiguous: the view behind batch_norm gives its axis of one sample a stride of C",
        links=(f"{SOURCE}aten/src/ATen/native/Normalization.cpp (instance_norm, batch_norm_backward_cpu)",),
        failures=("value", "infinite", "nan"),
        outputs=(output,),
        devices=("cpu",),
        ranks=(4, 5),
        predicts=_misread,
        always=False,  # few cases have one sample; `thorough` draws them, and a layer with a few channels
        **limits,
    )


ON_CPU = (
    *(
        _entry(requirement, output, where="one sample, channels last", cases=_one_sample_channels_last)
        for output, own in (("dx", "IN-G1"), ("dgamma", "IN-G2"), ("dbeta", "IN-G3"))
        for requirement in (own, "CM-P2", "CM-N8", "CM-S1")
    ),
    *(
        _entry("CM-V2", output, where="one sample", notes=_CHANNELS_LAST, cases=_one_sample_channels_first)
        for output in ("dx", "dgamma", "dbeta")
    ),
)
