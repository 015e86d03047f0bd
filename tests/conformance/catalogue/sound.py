"""Reports that turned out to be about no mistake: the right function, which must conform."""

from __future__ import annotations

from .plain import forward
from .written import batch_norm, whole

_RIGHT = "it is the formula, within roundings"


@whole(
    "right",
    "layer_norm",
    "is right: two passes in float32",
    "td-tolerance-too-tight",
    "ln-inductor-epilogue",
    "ln-cpu-cuda-bf16-differ",
    conforms=_RIGHT,
)
def _(x, gamma, beta, *, eps, axes):
    return forward("layer_norm", x, gamma, beta, eps, {"axes": axes})


@whole(
    "rms-right",
    "rms_norm",
    "is right, and rounds otherwise than another kernel",
    "rms-compile-rounding",
    conforms=_RIGHT,
)
def _(x, gamma, *, eps, axes):
    return forward("rms_norm", x, gamma, None, eps, {"axes": axes})


@batch_norm(
    "batch-right",
    "is right: a NaN in a batch is one in the running statistics",
    "bn-nan-sticky",
    "bn-fp16-inf-input-sticky",
    conforms="it is the formula: what is not finite stays so",
)
def _(b):
    return b.results()


@whole(
    "instance-right",
    "instance_norm",
    "is right: the mean of what is normalised is 0 apart from rounding",
    "in-compile-ill-conditioned-chain",
    conforms=_RIGHT,
)
def _(x, gamma, beta, *, eps, channel_axis):
    return forward("instance_norm", x, gamma, beta, eps, {"channel_axis": channel_axis})
