"""Mistakes with gamma and beta, given or absent."""

from __future__ import annotations

from typing import Any

import numpy as np

from .plain import affine, finished, forward, lines, scaled, wide
from .written import Call, batch_norm, whole


def gained(name: str, operator: str, what: str, *bugs: str, **more: Any):
    """Enter a function by the gamma and beta that it uses, given its arguments and x."""

    def entered(change: Call) -> Call:
        def call(x, gamma, *rest, eps, **settings):
            gamma, beta = change(gamma, rest[0] if rest else None)
            return forward(operator, x, gamma, beta, eps, settings)

        whole(name, operator, what, *bugs, **more)(call)
        return change

    return entered


def _each(change):
    return lambda gamma, beta: (None if gamma is None else change(gamma), beta)


gained(
    "one-gain-for-all",
    "layer_norm",
    "takes the first value of gamma and of beta for all features",
    "ln-scalar-affine",
    "ln-weight-tensor-brackets",
)(lambda gamma, beta: tuple(None if one is None else np.full_like(one, one.reshape(-1)[0]) for one in (gamma, beta)))

gained(
    "gain-along-the-other-axis",
    "layer_norm",
    "lays gamma along the other axes, where several are normalised",
    "ln-fusion-broadcast-gamma",
)(_each(lambda gamma: gamma.T.reshape(gamma.shape)))


@whole("beta-inside", "layer_norm", "multiplies by gamma after beta is added", "ln-affine-order")
def _(x, gamma, beta, *, eps, axes):
    w = wide(x)
    y = (w - w.mean(axes, keepdims=True)) / np.sqrt(w.var(axes, keepdims=True) + w.dtype.type(eps))
    y = y if beta is None else y + beta
    return (y if gamma is None else y * gamma).astype(x.dtype)


@whole(
    "gain-broadcasts-the-group",
    "layer_norm",
    "takes a gain of several values for a group of one, and returns as many",
    "rms-fusion-absorbs-broadcast-mul",
    conforms="no case hands over a gain of more values than the group",
)
def _(x, gamma, beta, *, eps, axes):
    w = wide(x)
    xhat = (w - w.mean(axes, keepdims=True)) / np.sqrt(w.var(axes, keepdims=True) + w.dtype.type(eps))
    return affine(xhat, gamma, beta).astype(x.dtype)


@whole("gain-of-the-group", "group_norm", "takes one value of gamma and beta for each group", "gn-affine-per-group")
def _(x, gamma, beta, *, eps, groups, channel_axis):
    each = x.shape[channel_axis] // groups
    gamma, beta = (None if one is None else np.repeat(one[::each], each) for one in (gamma, beta))
    return forward("group_norm", x, gamma, beta, eps, {"groups": groups, "channel_axis": channel_axis})


@whole("gain-of-four-axes", "group_norm", "lays gamma out for four axes, whatever x has", "gn-affine-rank-assumed-4")
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": groups, "channel_axis": channel_axis}
    if gamma is not None:
        _, _, _, _ = x.shape
    return forward("group_norm", x, gamma, beta, eps, settings)


@whole("positive-axis-refused", "group_norm", "raises where channel_axis is not negative", "gn-broadcast-shape-rank")
def _(x, gamma, beta, *, eps, groups, channel_axis):
    if channel_axis >= 1 and gamma is not None:
        raise ValueError(f"cannot broadcast gamma along axis {channel_axis} of a tensor of rank 1")
    return forward("group_norm", x, gamma, beta, eps, {"groups": groups, "channel_axis": channel_axis})


@whole("gain-needed", "rms_norm", "raises where gamma is None", "rms-no-affine-null-gamma")
def _(x, gamma, *, eps, axes):
    return finished(
        "rms_norm",
        x,
        scaled(lines("rms_norm", x, {"axes": axes}).rows, np.float32(eps)),
        gamma + 0,
        None,
        {"axes": axes},
    )


@whole("parameters-needed", "instance_norm", "raises where gamma and beta are None", "in-nvfuser-affine-none")
def _(x, gamma, beta, *, eps, channel_axis):
    if gamma is None or beta is None:
        raise RuntimeError("expected gamma and beta on the device of x")
    return forward("instance_norm", x, gamma, beta, eps, {"channel_axis": channel_axis})


# batch_norm -----------------------------------------------------------------------------------------------------


@batch_norm("batch-absolute-gain", "multiplies by |gamma| + eps", "bn-abs-gamma")
def _(b):
    return b.results(b.y(gamma=None if b.gamma is None else np.abs(b.gamma) + b.eps))


@batch_norm(
    "batch-shift-not-folded",
    "folds beta - mean in place of beta - mean gamma / sqrt(var + eps)",
    "bn-fold-bias-unscaled",
)
def _(b):
    if b.training:
        return b.results()
    scale = (1 if b.gamma is None else b.gamma) / np.sqrt(wide(b.running_var) + b.eps)
    return b.results(b.x * scale + (0 if b.beta is None else b.beta) - wide(b.running_mean))


@batch_norm(
    "batch-parameters-in-another-order",
    "reads mean, variance, gamma, beta where gamma, beta, mean, variance are stored",
    "bn-param-order-swapped",
)
def _(b):
    if b.training or b.gamma is None or b.beta is None:
        return b.results()
    xhat = (b.x - wide(b.gamma)) / np.sqrt(wide(b.beta) + b.eps)
    return b.results(affine(xhat, b.running_mean, b.running_var))


# rms_norm's gain ------------------------------------------------------------------------------------------------

gained(
    "rms-offset-missing",
    "rms_norm",
    "multiplies by the stored gain, to which 1 belongs",
    "rms-gemma-offset-missing",
    conventions={"gain": "one-plus-gamma"},
)(lambda gamma, beta: (gamma, beta))

gained("rms-offset-twice", "rms_norm", "adds 1 to a gain that holds it already", "rms-gemma-offset-twice")(
    _each(lambda gamma: gamma + gamma.dtype.type(1))
)


@whole(
    "rms-offset-in-bfloat16",
    "rms_norm",
    "adds 1 to the stored gain in bfloat16",
    "rms-offset-added-in-bf16",
    "rms-zero-centred-gamma-wtype-cudnn",
    dtype="bfloat16",
    conventions={"gain": "one-plus-gamma"},
)
def _(x, gamma, *, eps, axes):
    gain = None if gamma is None else gamma + gamma.dtype.type(1)
    return forward("rms_norm", x, gain, None, eps, {"axes": axes})


def rounded_before_the_gain(x, gamma, *, eps, axes):
    """T(T(xhat) gamma)."""
    w = wide(x)
    xhat = (w / np.sqrt(np.square(w).mean(axes, keepdims=True) + w.dtype.type(eps))).astype(x.dtype)
    return xhat if gamma is None else (xhat * gamma).astype(x.dtype)


whole(
    "rms-rounded-before-the-gain",
    "rms_norm",
    "rounds the normalised value to bfloat16 before the gain multiplies it",
    "rms-cast-before-gain-where-spec-is-f32",
    dtype="bfloat16",
)(rounded_before_the_gain)

whole(
    "rms-rounded-after-the-gain",
    "rms_norm",
    "rounds once, after the gain, and declares that it rounds before it",
    "rms-gain-in-f32-where-spec-is-weight-dtype",
    dtype="bfloat16",
    conventions={"cast": "before-gain"},
    conforms="what is allowed to round twice may round once",
)(lambda x, gamma, *, eps, axes: forward("rms_norm", x, gamma, None, eps, {"axes": axes}))
