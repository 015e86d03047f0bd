"""Where eps goes, and which one."""

from __future__ import annotations

import numpy as np

from .plain import mean, normalised, scaled, square, var
from .written import batch_norm, formula


@formula(
    "eps-beside-the-deviation",
    "layer_norm",
    "divides by sqrt(var) + eps",
    "ln-eps-on-std",
    "ln-eps-mode-ignored",
)
def _(rows, eps):
    return (rows - mean(rows)) / (np.sqrt(var(rows)) + eps)


@formula("larger-of-variance-and-eps", "layer_norm", "divides by sqrt(max(var, eps))", "ln-eps-max")
def _(rows, eps):
    return (rows - mean(rows)) / np.sqrt(np.maximum(var(rows), eps))


@formula("eps-added-twice", "layer_norm", "adds eps in the statistics, and again where it divides", "ln-eps-double")
def _(rows, eps):
    return normalised(rows, 2 * eps)


@formula(
    "eps-in-float16",
    "layer_norm",
    "rounds eps to float16, in which 1e-8 is 0",
    "ln-eps-fp16-underflow",
    dtype="float16",
)
def _(rows, eps):
    return normalised(rows, np.float32(np.float16(eps)))


@formula(
    "eps-of-the-fused-pattern",
    "layer_norm",
    "divides by sqrt(var + 1e-6), whatever eps the graph has",
    "ln-eps-hardcoded-in-fusion",
)
def _(rows, eps):
    return normalised(rows, rows.dtype.type(1e-6))


@batch_norm("batch-eps-beside-the-deviation", "divides by sqrt(var) + eps", "norm-eps-denominator-vs-var")
def _(b):
    centre, spread = (b.mean, b.var) if b.training else (b.running_mean, b.running_var)
    y = (b.x - centre) / (np.sqrt(spread) + b.eps)
    y = y if b.gamma is None else y * b.gamma
    return b.results(y if b.beta is None else y + b.beta)


@batch_norm("batch-least-eps", "raises eps to at least 1e-5", "bn-cudnn-min-eps")
def _(b):
    return b.results(b.y(eps=np.maximum(b.eps, b.x.dtype.type(1e-5))))


@batch_norm(
    "batch-no-eps-in-inference", "leaves eps out in inference", "bn-frozen-eps-missing", "bn-eval-fresh-vacuous"
)
def _(b):
    return b.results(b.y(eps=b.eps if b.training else 0))


@formula(
    "rms-eps-beside-the-root", "rms_norm", "divides by sqrt(mean(x^2)) + eps", "rms-eps-on-rms", "rms-eps-outside-root"
)
def _(rows, eps):
    return rows / (np.sqrt(square(rows)) + eps)


@formula("rms-root-of-the-root", "rms_norm", "divides by sqrt(sqrt(mean(x^2)) + eps)", "rms-eps-double-root")
def _(rows, eps):
    return rows / np.sqrt(np.sqrt(square(rows)) + eps)


@formula(
    "rms-eps-divided-by-n",
    "rms_norm",
    "adds eps to the sum of squares, and multiplies by sqrt(n)",
    "rms-eps-sum-not-mean",
)
def _(rows, eps):
    n = rows.shape[1]
    return rows / np.sqrt(np.square(rows).sum(1, keepdims=True) + eps) * np.sqrt(rows.dtype.type(n))


@formula(
    "rms-eps-of-the-spiky-row",
    "rms_norm",
    "divides x by its largest magnitude, and adds eps to what is left",
    "rms-eps-scaled-by-max2",
)
def _(rows, eps):
    largest = np.abs(rows).max(1, keepdims=True)
    part = rows / np.where(largest == 0, 1, largest)
    return part / np.sqrt(square(part) + eps)


@formula(
    "rms-eps-of-the-dtype",
    "rms_norm",
    "takes the machine epsilon of bfloat16 for eps",
    "rms-eps-default-dtype",
    dtype="bfloat16",
)
def _(rows, eps):
    return scaled(rows, rows.dtype.type(2.0**-7))


@formula(
    "rms-eps-of-the-default",
    "rms_norm",
    "takes 1.19e-7 for eps, as a call without eps does",
    "rms-eps-default-mismatch-hf-torch",
    "rms-eps-not-passed",
)
def _(rows, eps):
    return scaled(rows, rows.dtype.type(2.0**-23))


@formula("rms-eps-floor", "rms_norm", "raises eps to at least 1e-4", "rms-eps-fp16-floor", dtype="float16")
def _(rows, eps):
    return scaled(rows, np.maximum(eps, rows.dtype.type(1e-4)))


@formula("rms-no-eps", "rms_norm", "takes 0 for eps", "rms-eps-zero-default")
def _(rows, eps):
    return scaled(rows, 0)


@formula(
    "rms-by-normalize",
    "rms_norm",
    "divides by max(|x|, 1e-12), which is 0 in float16, and multiplies by sqrt(n)",
    "rms-l2normalize-eps-underflow",
    dtype="float16",
)
def _(rows, eps):
    norm = np.sqrt(np.square(rows).sum(1, keepdims=True)).astype(np.float16)
    return rows / np.maximum(norm, np.float16(1e-12)).astype(rows.dtype) * np.sqrt(np.float32(rows.shape[1]))
