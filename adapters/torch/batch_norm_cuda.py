"""
Known violations of PyTorch's own CUDA kernels of batch_norm, measured on an H100; cuDNN's kernels have none of them.

InstanceNorm is batch_norm over the channels of each sample, and has the same violations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation, beta_alone
from .bridge import SOURCE
from .formats import OVERFLOW, ROUNDOFF, UNDERFLOW

_LINK = f"{SOURCE}aten/src/ATen/native/cuda/Normalization.cuh"

# No weight, and a bias ---------------------------------------------------------------------------------------


def _one_channel(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return beta_alone(inputs, settings) and inputs["beta"].size == 1


def _is_zero(failure: Failure) -> Any:
    return failure.got == 0


_SIZED_AS_WEIGHT: dict[str, Any] = {
    "links": (f"{_LINK} (batch_norm_backward_cuda_template)",),
    "devices": ("cuda",),
}

_RAISES = KnownViolation(
    "CM-T3",
    "the gradient of a bias is made in the size of the weight, which is empty where there is none: autograd raises",
    failures=("raises",),
    outputs=("gradient",),
    where="no gamma, and a beta",
    cases=beta_alone,
    **_SIZED_AS_WEIGHT,
)

_ZERO = tuple(
    KnownViolation(
        requirement,
        "the gradient of a bias is made in the size of the weight, which is empty where there is none: of one channel,"
        " autograd sums it to 0",
        failures=("value",),
        outputs=("dbeta",),
        where="no gamma, a beta of one channel",
        cases=_one_channel,
        predicts=_is_zero,
        always=False,  # the right gradient may be 0, or the gradient may not be requested
        **_SIZED_AS_WEIGHT,
    )
    for requirement in ("BN-G3", "BN-G4", "CM-D1")
)

# Products of 16 bits -----------------------------------------------------------------------------------------


def _rounded_to_float16(runs: int, failure: Failure, *, by_sample: bool = False) -> Any:
    """
    Whether the errors of dx and dgamma are those of sums whose products and partial sums are rounded to float16.

    ``runs``: how many runs were compared; each may be off. ``by_sample``: each channel of each sample is normalised by
    itself.

    Each product, each warp's sum of products, and the total are rounded at most once: an error of 3 u times the sum of
    magnitudes. If that sum overflows, any of the three may. x - mean and 1/sqrt(var + eps) are off by less than a unit
    of float16.
    """
    assert failure.got is not None and failure.expected is not None and failure.g is not None
    axis = failure.settings["channel_axis"] % failure.g.ndim
    others = tuple(one for one in range(failure.g.ndim) if one != axis)
    axes = tuple(one for one in others if one or not by_sample)

    def of_a_channel(values: Any) -> Any:
        return np.expand_dims(np.asarray(values, np.float64), others)

    x, g = np.asarray(failure.inputs["x"], np.float64), np.asarray(failure.g, np.float64)
    gamma, training = failure.inputs["gamma"], failure.settings.get("training", True)
    mean = x.mean(axis=axes, keepdims=True) if training else of_a_channel(failure.inputs["running_mean"])
    var = x.var(axis=axes, keepdims=True) if training else of_a_channel(failure.inputs["running_var"])
    r, d = 1 / np.sqrt(var + failure.settings["eps"]), x - mean
    n = np.prod([g.shape[one] for one in axes])
    size = np.abs(g * d).sum(axis=axes, keepdims=True)
    of_sum = 3 * ROUNDOFF * size + 3 * n * UNDERFLOW
    if failure.output == "dgamma":
        off, lost = (r * of_sum).sum(axis=others), (size >= OVERFLOW).any(axis=others)
    else:
        gain = 1.0 if gamma is None else of_a_channel(gamma)
        off, lost = np.abs(gain * d) * r**3 / n * of_sum, size >= OVERFLOW
    off = runs * (off + 4 * ROUNDOFF * np.abs(failure.expected) + 2 * UNDERFLOW)
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(failure.got), np.abs(failure.got - failure.expected) <= 1.01 * off, lost)


def _products(prefix: str, by_sample: bool) -> tuple[KnownViolation, ...]:
    return tuple(
        KnownViolation(
            requirement,
            "each product of the cotangent and x - mean, and their sum, is rounded to float16: below 2^-25 it is 0,"
            " from 65520 on infinite",
            links=(f"{_LINK} (Float2, GradOp)",),
            failures=("value", "infinite", "nan"),
            outputs=("dx", "dgamma"),
            dtypes=("float16",),
            devices=("cuda",),
            predicts=partial(_rounded_to_float16, runs, by_sample=by_sample),
            always=False,  # the accuracy class of 16-bit data hides it if nothing leaves the normal range
        )
        for requirements, runs in (
            ((f"{prefix}-G1", f"{prefix}-G2", f"{prefix}-G4", "CM-N8", "CM-D1"), 1),
            ((f"{prefix}-G9", "CM-V1", "CM-V2", "CM-V3"), 2),  # these requirements compare two runs
        )
        for requirement in requirements
    )


ON_CUDA = (_RAISES, *_ZERO, *_products("BN", by_sample=False))
#: Violations of instance_norm. It repeats the parameters for each sample, so autograd raises for one channel too.
INSTANCE_NORM_ON_CUDA = (_RAISES, *_products("IN", by_sample=True))
