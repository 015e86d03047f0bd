"""Known violations of PyTorch's CUDA kernels of group_norm, measured on an H100."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation
from .bridge import SOURCE
from .formats import NORMAL, OVERFLOW, ROUNDOFF, UNDERFLOW
from .groups import Groups, mean

_LINK = f"{SOURCE}aten/src/ATen/native/cuda/group_norm_kernel.cu"

# eps in float16 ------------------------------------------------------------------------------------------------------


def _small_eps(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether eps is subnormal or 0 in float16, and so has fewer digits than other numbers."""
    return settings["eps"] < NORMAL


def _of_rounded_eps(failure: Failure) -> Any:
    """
    Whether y, dx and dgamma are those for eps rounded to float16.

    The rest is computed in float32, but the saved mean and 1/sqrt(var + eps) are read in float16. So each factor of a
    term is off by one roundoff, at most five with that of the result, and the mean by half the smallest number. A
    result that is predicted to overflow may be infinite or NaN.
    """
    assert failure.got is not None
    of = Groups(failure, float(np.float16(failure.settings["eps"])))
    r, d, g, h, size = of.r, of.d, of.g, of.h, of.size
    with np.errstate(all="ignore"):
        if failure.output == "y":
            gain = np.abs(of.gamma) * r
            value, terms, lost = of.gamma * d * r + of.beta, gain * size + np.abs(of.beta), gain
        elif failure.output == "dgamma":
            value, terms, lost = g * d * r, np.abs(g) * r * size, np.abs(g) * r
        else:
            moment, total = mean(np.abs(h) * size), mean(np.abs(h))
            value = r * (h - mean(h)) - d * r**3 * mean(h * d)
            terms = r * (np.abs(h) + total) + r**3 * size * moment
            lost = r**3 * (total * size + moment)
        value, off = of.back(failure, value, 5 * ROUNDOFF * terms + UNDERFLOW * (lost + 1))
        overflown = ~np.isfinite(value) | (np.abs(value) + off >= OVERFLOW)
        return np.where(np.isfinite(failure.got), np.abs(failure.got - value) <= off, overflown)


_EPS = tuple(
    KnownViolation(
        requirement,
        "eps is rounded to float16, to few digits below 2^-14 and to 0 below 2^-25",
        links=(f"{_LINK} (GroupNormKernelImpl, RowwiseMomentsCUDAKernel)",),
        failures=("value", "infinite", "nan"),
        outputs=(output,),
        dtypes=("float16",),
        devices=("cuda",),
        where="eps below 2^-14",
        cases=_small_eps,
        predicts=_of_rounded_eps,
        always=False,  # if the variance is far above eps, eps makes no difference
    )
    for requirement, output in (("GN-F1", "y"), ("GN-G1", "dx"), ("GN-G2", "dgamma"))
)

# Products of 16 bits -------------------------------------------------------------------------------------------------


def _one_position(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    x = inputs["x"]
    return x.size == x.shape[0] * x.shape[settings["channel_axis"]]


def _of_rounded_products(failure: Failure) -> Any:
    """Whether a sum of products g x, each rounded to float16, explains the error of dx."""
    assert failure.got is not None and failure.expected is not None
    of = Groups(failure, failure.settings["eps"])
    with np.errstate(all="ignore"):
        products = np.abs(of.g * of.x)
        of_sum = mean(np.abs(of.gamma) * (ROUNDOFF * products + UNDERFLOW))
        lost = (products >= OVERFLOW).any(axis=(2, 3), keepdims=True)  # infinite, and so is every sum that contains it
        off, lost = of.back(failure, of.r**3 * of.size * of_sum, lost)
        off = 1.01 * off + 5 * ROUNDOFF * np.abs(failure.expected) + 2 * UNDERFLOW
        return np.where(np.isfinite(failure.got), ~lost & (np.abs(failure.got - failure.expected) <= off), lost)


_PRODUCTS = tuple(
    KnownViolation(
        requirement,
        "up to 2.11, with one position, each product of the cotangent and x is rounded to float16: from 65520 on dx is"
        " infinite or NaN",
        links=(f"{_LINK} (Compute1dBackwardFusedParamsCUDAKernel)",),
        failures=("value", "infinite", "nan"),
        outputs=("dx",),
        dtypes=("float16",),
        devices=("cuda",),
        where="one position",
        cases=_one_position,
        predicts=_of_rounded_products,
        always=False,  # few products leave float16's range
    )
    for requirement in ("GN-G1", "GN-G4", "GN-G8")
)

# Many groups ---------------------------------------------------------------------------------------------------------

#: The largest second extent of a CUDA grid.
_GRID = 65535


def _more_groups_than_a_grid(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return settings["groups"] > _GRID


_GRADIENTS_OF_MANY_GROUPS = KnownViolation(
    "CM-S1",
    "the gradients are taken on a grid of samples by groups, whose second extent CUDA limits to 65,535: it raises"
    " 'invalid argument'",
    links=(f"{_LINK} (GroupNorm1dBackward, GroupNormBackwardKernelImplInternal)",),
    failures=("raises",),
    outputs=("gradient",),
    devices=("cuda",),
    where="more than 65,535 groups",
    cases=_more_groups_than_a_grid,
)

ON_CUDA = (*_EPS, *_PRODUCTS, _GRADIENTS_OF_MANY_GROUPS)
