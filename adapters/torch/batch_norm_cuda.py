"""What PyTorch's own CUDA kernels of batch_norm are known to violate, as measured on an H100; cuDNN's do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation
from .batch_norm_backward import each_step_rounded
from .bridge import SOURCE

_LINK = f"{SOURCE}aten/src/ATen/native/cuda/Normalization.cuh"

# No weight, and a bias ---------------------------------------------------------------------------------------


def _bias_alone(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return inputs["gamma"] is None and inputs["beta"] is not None


def _one_channel(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return _bias_alone(inputs, settings) and inputs["beta"].size == 1


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
    cases=_bias_alone,
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
        always=False,  # a gradient may be 0, or may not be asked for
        **_SIZED_AS_WEIGHT,
    )
    for requirement in ("BN-G3", "BN-G4", "CM-D1")
)

# Products of 16 bits -----------------------------------------------------------------------------------------


def _products_rounded(failure: Failure) -> Any:
    """Whether dx and dgamma are those of rounded products; of a channel with a product above float16, not finite."""
    assert failure.got is not None and failure.g is not None
    axis, axes = failure.settings["channel_axis"], list(range(failure.g.ndim))
    axes.remove(axis % failure.g.ndim)
    x, g = (np.asarray(values, np.float64) for values in (failure.inputs["x"], failure.g))
    mean = x.mean(axis=tuple(axes)) if failure.settings["training"] else failure.inputs["running_mean"]
    products = np.abs(g * (x - np.expand_dims(np.asarray(mean, np.float64), axes)))
    # A product that is rounded to infinity is 65520 or more; x - mean may be off by a unit of float32.
    above = products.max(axis=tuple(axes), initial=0.0, keepdims=failure.got.ndim > 1) >= 65519
    return np.where(above, ~np.isfinite(failure.got), each_step_rounded(failure))


_PRODUCTS = tuple(
    KnownViolation(
        requirement,
        "each product of the cotangent and x - mean is rounded to float16 before it is added up: below 2^-25 it is 0,"
        " above 65504 infinite",
        links=(f"{_LINK} (Float2, GradOp)",),
        failures=("value", "infinite", "nan"),
        outputs=("dx", "dgamma"),
        dtypes=("float16",),
        devices=("cuda",),
        predicts=_products_rounded,
        always=False,  # the accuracy class of 16-bit data hides it where no product is out of the normal range
    )
    for requirement in ("BN-G1", "BN-G2", "BN-G4", "CM-D1")
)

ON_CUDA = (_RAISES, *_ZERO, *_PRODUCTS)
