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
from .misread_cotangent import comes_of


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
    """
    assert failure.g is not None
    g = np.moveaxis(np.asarray(failure.g, np.float64), failure.settings["channel_axis"], -1)
    return comes_of(failure, g.reshape(g.shape[-1], -1))  # the right shape is (positions, channels)


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
