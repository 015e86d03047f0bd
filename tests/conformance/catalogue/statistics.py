"""Mistakes in the mean and the variance."""

from __future__ import annotations

import numpy as np

from .plain import finished, lines, mean, normalised, scaled, square, var, wide
from .written import batch_norm, formula, whole


def one_pass(rows):
    """mean(x^2) - mean(x)^2."""
    return square(rows) - np.square(mean(rows))


def padded(rows, eps):
    """Lanes beyond the last value hold 0, become -mean, and enter the variance."""
    n = rows.shape[1]
    block = 1 << (n - 1).bit_length()
    centred = np.pad(rows, ((0, 0), (0, block - n))) - mean(rows)
    return (rows - mean(rows)) / np.sqrt(np.square(centred).sum(1, keepdims=True) / rows.dtype.type(n) + eps)


def unbiased(rows, eps):
    """Bessel's correction, which is 0/0 for one value."""
    n = rows.dtype.type(rows.shape[1])
    return (rows - mean(rows)) / np.sqrt(var(rows) * n / (n - 1) + eps)


formula("unbiased-variance", "layer_norm", "divides by n - 1", "ln-unbiased-var", "mvn-n1-unbiased-nan")(unbiased)
formula("group-unbiased-variance", "group_norm", "divides by n - 1", "gn-unbiased-reference")(unbiased)


@batch_norm("batch-unbiased-variance", "normalises a batch by the variance over n - 1", "bn-unbiased-normalisation")
def _(b):
    n = b.x.dtype.type(len(b.x))
    return b.results(b.y(spread=b.var * n / (n - 1) if b.training else None))


def mean_of_squares(rows, eps):
    """The variance in one pass, which may be negative."""
    return (rows - mean(rows)) / np.sqrt(one_pass(rows) + eps)


formula(
    "one-pass-variance",
    "layer_norm",
    "takes mean(x^2) - mean(x)^2 for the variance",
    "ln-onepass-torch17",
    "ln-onepass-burn-simd",
    "ln-onepass-ort",
    "ln-large-magnitude-old-cpu",
)(mean_of_squares)
formula(
    "group-one-pass-variance", "group_norm", "takes mean(x^2) - mean(x)^2 for the variance", "gn-negative-variance"
)(mean_of_squares)
formula(
    "instance-one-pass-variance", "instance_norm", "takes mean(x^2) - mean(x)^2 for the variance", "in-onepass-gpu"
)(mean_of_squares)


@formula(
    "one-pass-variance-clamped",
    "layer_norm",
    "takes max(mean(x^2) - mean(x)^2, 0) for the variance",
    "ln-onepass-clamped",
)
def _(rows, eps):
    return (rows - mean(rows)) / np.sqrt(np.maximum(one_pass(rows), 0) + eps)


@batch_norm("batch-one-pass-variance", "takes mean(x^2) - mean(x)^2 for the variance", "bn-onepass-cancellation")
def _(b):
    spread = np.square(b.x).mean(0) - np.square(b.mean)
    return b.results(b.y(spread=spread if b.training else None))


@formula(
    "squares-overflow",
    "layer_norm",
    "squares the deviations as they are, which overflow float32",
    "ln-f32-square-overflow",
    conforms="what becomes of squares that overflow is advice (LN-R1)",
)
def _(rows, eps):
    return normalised(rows, eps)


formula(
    "padded-lanes",
    "layer_norm",
    "counts the lanes that fill a block up as values of -mean",
    "ln-padded-lanes-in-variance",
)(padded)


@formula(
    "group-padded-channels",
    "group_norm",
    "fills a group up to a power of two with zeros, which enter mean and variance",
    "gn-nonpower2-group-size",
)
def _(rows, eps):
    n = rows.shape[1]
    full = np.pad(rows, ((0, 0), (0, (1 << (n - 1).bit_length()) - n)))
    return (rows - mean(full)) / np.sqrt(var(full) + eps)


def one_by_one(rows, eps):
    """Sums value by value in the working dtype."""
    n = rows.dtype.type(rows.shape[1])
    centre = np.cumsum(rows, 1)[:, -1:] / n
    d = rows - centre
    return d / np.sqrt(np.cumsum(np.square(d), 1)[:, -1:] / n + eps)


_ANY_ORDER = (
    "the envelope is that of any order of summation; the loss grows with n, and the longest group has some thousands"
)
formula(
    "summed-one-by-one",
    "layer_norm",
    "adds the values of a group one by one in float32",
    "ln-inductor-large-norm",
    conforms=_ANY_ORDER,
)(one_by_one)
formula(
    "group-summed-one-by-one",
    "group_norm",
    "adds the values of a group one by one in float32",
    "gn-large-spatial-f32-sum",
    conforms=_ANY_ORDER,
)(one_by_one)
formula(
    "instance-summed-one-by-one",
    "instance_norm",
    "adds the values of a group one by one in float32",
    "in-compile-large-spatial",
    conforms=_ANY_ORDER,
)(one_by_one)


@whole(
    "value-alone-leaks",
    "layer_norm",
    "folds mean and beta into one constant, so that a lone value does not cancel",
    "ln-n1-leak",
    conventions={"affine": "centred"},
)
def _(x, gamma, beta, *, eps, axes):
    at = lines("layer_norm", x, {"axes": axes})
    rows = at.rows
    scale = 1 / np.sqrt(var(rows) + rows.dtype.type(eps))
    scale = scale if gamma is None else scale * at.spread(gamma)
    shift = -mean(rows) * scale
    y = rows * scale + (shift if beta is None else shift + at.spread(beta))
    return at.back(y).astype(x.dtype)


# rms_norm -------------------------------------------------------------------------------------------------------


@formula("rms-multiplied", "rms_norm", "multiplies by the root where it should divide", "rms-divide-by-rsqrt")
def _(rows, eps):
    return rows * np.sqrt(square(rows) + eps)


@formula("rms-sum-of-squares", "rms_norm", "divides by the root of the sum, not of the mean", "rms-sum-instead-of-mean")
def _(rows, eps):
    return rows / np.sqrt(np.square(rows).sum(1, keepdims=True) + eps)


@formula(
    "rms-scale-inverted", "rms_norm", "multiplies x / |x| by n^(-1/2) in place of n^(1/2)", "rms-dim-scale-inverted"
)
def _(rows, eps):
    return scaled(rows, eps) / rows.dtype.type(rows.shape[1])


@formula(
    "rms-merged-as-deviations",
    "rms_norm",
    "merges the sums of squares of two halves as if they were of deviations",
    "rms-welford-merge-on-sum-of-squares",
)
def _(rows, eps):
    n = rows.shape[1]
    half = n // 2
    a, b = (np.square(part).sum(1, keepdims=True) for part in (rows[:, :half], rows[:, half:]))
    total = a + b + np.square(b - a) * rows.dtype.type(half * ((n - half) // n))
    return rows / np.sqrt(total / rows.dtype.type(n) + eps)


@formula(
    "rms-of-the-local-half",
    "rms_norm",
    "divides each half of a group by its own root, as ranks do that do not share their sums",
    "rms-tensor-parallel-local-stat",
)
def _(rows, eps):
    half = rows.shape[1] // 2
    parts = [part for part in (rows[:, :half], rows[:, half:]) if part.shape[1]]
    return np.concatenate([scaled(part, eps) for part in parts], 1)


# Which values make a group --------------------------------------------------------------------------------------


@whole("groups-ignored", "group_norm", "takes all channels for one group", "rms-gated-group-size")
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": 1, "channel_axis": channel_axis}
    rows = lines("group_norm", x, settings).rows
    return finished("group_norm", x, normalised(rows, rows.dtype.type(eps)), gamma, beta, settings)


@whole(
    "one-group-as-instance",
    "group_norm",
    "normalises each channel alone where there is one group",
    "gn-one-group-as-instance",
)
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": x.shape[channel_axis] if groups == 1 else groups, "channel_axis": channel_axis}
    rows = lines("group_norm", x, settings).rows
    return finished("group_norm", x, normalised(rows, rows.dtype.type(eps)), gamma, beta, settings)


@whole("groups-interleaved", "group_norm", "puts channel c into group c mod G", "gn-interleaved-groups-convention")
def _(x, gamma, beta, *, eps, groups, channel_axis):
    moved = np.moveaxis(wide(x), channel_axis, 1)
    parted = moved.reshape(len(x), moved.shape[1] // groups, groups, -1)
    centre, spread = parted.mean((1, 3), keepdims=True), parted.var((1, 3), keepdims=True)
    xhat = ((parted - centre) / np.sqrt(spread + moved.dtype.type(eps))).reshape(moved.shape)
    settings = {"groups": groups, "channel_axis": channel_axis}
    again = lines("group_norm", np.moveaxis(xhat, 1, channel_axis), settings).rows
    return finished("group_norm", x, again, gamma, beta, settings)


@whole(
    "channels-last-split-alone",
    "group_norm",
    "splits a tensor with its channels last into groups without moving the channels",
    "gn-channels-last-reshape-without-transpose",
)
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": groups, "channel_axis": channel_axis}
    if channel_axis % x.ndim != x.ndim - 1:
        rows = lines("group_norm", x, settings).rows
        return finished("group_norm", x, normalised(rows, rows.dtype.type(eps)), gamma, beta, settings)
    rows = wide(x).reshape(len(x) * groups, -1)
    xhat = normalised(rows, rows.dtype.type(eps)).reshape(x.shape)
    return finished("group_norm", x, lines("group_norm", xhat, settings).rows, gamma, beta, settings)


@whole(
    "vectors-over-the-batch",
    "group_norm",
    "normalises a tensor of two axes over its samples",
    "gn-ggml-axis-convention",
)
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": groups, "channel_axis": channel_axis}
    rows = lines("group_norm", x, settings).rows
    xhat = normalised(rows, rows.dtype.type(eps))
    if x.ndim == 2:
        w = wide(x)
        xhat = lines("group_norm", (w - w.mean(0)) / np.sqrt(w.var(0) + w.dtype.type(eps)), settings).rows
    return finished("group_norm", x, xhat, gamma, beta, settings)


@whole(
    "instance-over-axis-one", "instance_norm", "takes axis 1 for the channels, wherever they are", "in-axis-by-trial"
)
def _(x, gamma, beta, *, eps, channel_axis):
    w = wide(x)
    axes = tuple(range(2, x.ndim))
    xhat = (w - w.mean(axes, keepdims=True)) / np.sqrt(w.var(axes, keepdims=True) + w.dtype.type(eps))
    settings = {"channel_axis": channel_axis}
    return finished("instance_norm", x, lines("instance_norm", xhat, settings).rows, gamma, beta, settings)


@batch_norm("batch-over-axis-one", "takes axis 1 for the channels where they are last", "bn-nhwc-wrong-axis")
def _(b):
    if not b.training or b.channel_axis % b.given.ndim != b.given.ndim - 1:
        return b.results()
    w = wide(b.given)
    axes = (0, *range(2, w.ndim))
    xhat = (w - w.mean(axes, keepdims=True)) / np.sqrt(w.var(axes, keepdims=True) + b.eps)
    y = lines("batch_norm", xhat, {"channel_axis": b.channel_axis}).rows.T
    y = y if b.gamma is None else y * b.gamma
    return b.results(y if b.beta is None else y + b.beta)


@batch_norm("batch-each-sample", "normalises each sample over its channels", "td-symmetric-shapes")
def _(b):
    spread = b.x.var(1, keepdims=True), b.x.mean(1, keepdims=True)
    return b.results(b.y(spread=spread[0], centre=spread[1]) if b.training else None)


@batch_norm(
    "batch-divided-by-samples",
    "divides the sum of a channel by the number of samples, not of values",
    "bn-mask-count-wrong",
)
def _(b):
    times = b.x.dtype.type(len(b.x) / len(b.given))
    return b.results(b.y(centre=b.mean * times) if b.training else None)


@whole(
    "rms-region-of-the-gain",
    "rms_norm",
    "normalises over those axes alone along which gamma has several values",
    "rms-channelwise-scale-shape-convention",
    conforms="gamma has the shape of the axes, and an axis of one value changes no mean",
)
def _(x, gamma, *, eps, axes):
    w = wide(x)
    if gamma is not None:
        axes = tuple(axis for axis in axes if gamma.shape[axis] > 1) or axes
    y = w / np.sqrt(np.square(w).mean(axes, keepdims=True) + w.dtype.type(eps))
    return (y if gamma is None else y * gamma).astype(x.dtype)
