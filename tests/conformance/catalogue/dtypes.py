"""In which dtype something is computed, rounded or returned."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .plain import finished, forward, lines, mean, normalised, scaled, var, wide
from .written import formula, whole

Array = np.ndarray


def rounded(value: Array, dtype: Any) -> Array:
    """Rounded to a dtype, in the one that it was computed in."""
    return value.astype(dtype).astype(value.dtype)


@formula(
    "sums-in-float16",
    "layer_norm",
    "adds up squares in float16, which overflow",
    "ln-fp16-accumulator-overflow",
    dtype="float16",
)
def _(rows, eps):
    d = rows - mean(rows)
    total = np.cumsum(np.square(d.astype(np.float16)), 1, dtype=np.float16)[:, -1:].astype(np.float32)
    return d / np.sqrt(total / np.float32(rows.shape[1]) + eps)


def all_in_float16(rows, eps):
    """Rounds every step to float16."""
    narrow = rows.astype(np.float16)
    n = np.float16(min(rows.shape[1], 65504))
    centre = np.cumsum(narrow, 1, dtype=np.float16)[:, -1:] / n
    d = narrow - centre
    spread = np.cumsum(np.square(d), 1, dtype=np.float16)[:, -1:] / n
    return (d / np.sqrt(spread + np.float16(eps))).astype(np.float32)


formula("steps-in-float16", "layer_norm", "computes in float16", "ln-fp16-compute-precision", dtype="float16")(
    all_in_float16
)
formula("instance-in-float16", "instance_norm", "computes in float16", "in-fp16-variance-overflow", dtype="float16")(
    all_in_float16
)


@formula(
    "partial-sums-in-bfloat16",
    "layer_norm",
    "keeps sums of 32 values in bfloat16",
    "ln-partial-sum-precision",
    dtype="bfloat16",
)
def _(rows, eps):
    def total(values):
        parts = [values[:, at : at + 32].sum(1, keepdims=True) for at in range(0, values.shape[1], 32)]
        found = rounded(parts[0], ml_dtypes.bfloat16)
        for part in parts[1:]:
            found = rounded(found + part, ml_dtypes.bfloat16)
        return found / np.float32(rows.shape[1])

    d = rows - total(rows)
    return d / np.sqrt(total(np.square(d)) + eps)


@formula("rms-sum-in-bfloat16", "rms_norm", "adds up squares in bfloat16", "rms-bf16-accumulate", dtype="bfloat16")
def _(rows, eps):
    squares = np.square(rows)
    total = np.zeros((len(rows), 1), np.float32)
    for at in range(rows.shape[1]):
        total = rounded(total + squares[:, at : at + 1], ml_dtypes.bfloat16)
    return rows / np.sqrt(total / np.float32(rows.shape[1]) + eps)


@formula(
    "rms-x-in-bfloat16",
    "rms_norm",
    "rounds x to bfloat16 before it is squared and multiplied",
    "rms-device-f32-inaccurate",
)
def _(rows, eps):
    return scaled(rounded(rows, ml_dtypes.bfloat16), eps)


@whole("group-x-in-float16", "group_norm", "rounds x to float16 before anything else", "gn-mixed-f16-inf-before-upcast")
def _(x, gamma, beta, *, eps, groups, channel_axis):
    with np.errstate(over="ignore"):
        narrow = rounded(x, np.float16)
    return forward("group_norm", narrow, gamma, beta, eps, {"groups": groups, "channel_axis": channel_axis})


@whole(
    "parameters-misread",
    "layer_norm",
    "reads 16-bit gamma and beta as if they were float32",
    "ln-bf16-params-misread",
    dtype="float16",
)
def _(x, gamma, beta, *, eps, axes):
    def misread(parameter):
        twice = np.concatenate([parameter.reshape(-1), parameter.reshape(-1)])
        return twice.view(np.float32).reshape(parameter.shape)

    rows = lines("layer_norm", x, {"axes": axes}).rows
    parameters = [None if one is None else misread(one) for one in (gamma, beta)]
    return finished("layer_norm", x, normalised(rows, np.float32(eps)), *parameters, {"axes": axes})


@formula(
    "subnormals-flushed", "layer_norm", "takes a deviation below the smallest normal number for 0", "ln-denormal-ftz"
)
def _(rows, eps):
    d = rows - mean(rows)
    d = np.where(np.abs(d) < np.finfo(d.dtype).tiny, 0, d).astype(d.dtype)
    return d / np.sqrt(var(rows) + eps)


@whole(
    "rms-returns-float32",
    "rms_norm",
    "returns y in the float32 that it was computed in",
    "rms-autocast-promotes",
    dtype="bfloat16",
)
def _(x, gamma, *, eps, axes):
    w = wide(x)
    y = w / np.sqrt(np.square(w).mean(axes, keepdims=True) + np.float32(eps))
    return y if gamma is None else y * gamma
