"""
XLA loses the gradient of a variance that is clipped at 0, in bfloat16.

The gradient of max(v, 0) goes to v if v == max(v, 0). From 4096 groups on, XLA compares v in float32 with a maximum
rounded to bfloat16. They differ in nearly all groups, so the gradient of v is lost. XLA may keep v unrounded because
it may compute more precisely than requested (`xla_allow_excess_precision`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation, Predicted

#: The unit roundoff of bfloat16, and half its smallest number.
_U, _ETA = 2.0**-8, 2.0**-134

#: The number of groups from which this happens, for any group length and number of cores: measured with JAX 0.10.2.
_GROUPS = 4096


def _many_groups(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    shape = np.shape(inputs["x"])
    return int(np.prod(shape[: len(shape) - len(settings["axes"])])) >= _GROUPS


def _without_variance(failure: Failure) -> Predicted:
    """
    Whether each element of dx is r (h - mean(h)) with h = g gamma: dx if the variance were a constant.

    Each step is rounded to bfloat16: h, its sum of n terms, the quotient, the difference and the product. r comes from
    mean(x^2) - mean(x)^2, where each term is off by n + 2 roundings. Terms in u^2 are below one in ten here.
    """
    assert failure.got is not None and failure.g is not None
    axes = tuple(failure.settings["axes"])
    x, g = np.asarray(failure.inputs["x"], np.float64), np.asarray(failure.g, np.float64)
    gamma = failure.inputs["gamma"]
    h = g if gamma is None else g * np.asarray(gamma, np.float64)
    n = np.prod([x.shape[axis] for axis in axes])

    def mean(values: Any) -> Any:
        return values.mean(axis=axes, keepdims=True)

    var, eps = mean((x - mean(x)) ** 2), failure.settings["eps"]
    of_var = (n + 2) * _U * (mean(x * x) + mean(x) ** 2)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        r, largest = 1 / np.sqrt(var + eps), 1 / np.sqrt(np.maximum(var - of_var, 0) + eps)
        centred = h - mean(h)
        of_h = 4 * _U * np.abs(h) + (n + 4) * _U * mean(np.abs(h)) + 3 * _ETA
        off = 1.1 * ((largest * (1 + 3 * _U) - r) * np.abs(centred) + largest * of_h) + _ETA
        return np.abs(failure.got - r * centred) <= off


#: The violation of everything built on jax.nn.standardize(x), which clips the variance.
LOST_VARIANCE = (
    KnownViolation(
        "CM-S1",
        "the gradient of the variance is lost in bfloat16: XLA compares the clipped variance with one that it did not"
        " round, and max(v, 0) passes its gradient on only where they are equal",
        links=(
            "https://github.com/jax-ml/jax/blob/main/jax/_src/nn/functions.py (standardize: jnp.clip(variance, 0))",
            "https://github.com/jax-ml/jax/issues/23007",
        ),
        failures=("value",),
        outputs=("dx",),
        dtypes=("bfloat16",),
        devices=("cpu",),
        where=f"x of {_GROUPS} groups or more",
        cases=_many_groups,
        predicts=_without_variance,
        always=False,  # if the accuracy class of 16-bit data is wide, it hides this
    ),
)
