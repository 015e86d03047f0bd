"""Sizes: from which on, or at which, a function is wrong."""

from __future__ import annotations

import numpy as np

from .gradients import batch_call
from .plain import finished, forward, lines, mean, square, var
from .written import batch_norm, formula, made, whole


@formula(
    "rows-of-the-grid",
    "layer_norm",
    "leaves groups beyond 65,535 as they were, zeros",
    "ln-rows-65536",
    conforms="cases at quick have up to 4,097 groups; at standard they have 65,537",
)
def _(rows, eps):
    xhat = (rows - mean(rows)) / np.sqrt(var(rows) + eps)
    xhat[65535:] = 0
    return xhat


@formula(
    "rows-of-23-bits",
    "layer_norm",
    "takes the statistics of group 0 from group 2^23 on, where n is no multiple of 4",
    "ln-rocm-M-2e23",
    conforms="no case has 2^23 groups: x would take gigabytes",
)
def _(rows, eps):
    xhat = (rows - mean(rows)) / np.sqrt(var(rows) + eps)
    if rows.shape[1] % 4:
        xhat[1 << 23 :] = xhat[:1]
    return xhat


@whole(
    "batch-limit",
    "batch_norm",
    "raises where a channel has more than 65,535 samples",
    "bn-large-batch-limit",
    conforms="cases at quick have up to 4,097 samples; at standard they have 65,537",
)
def _(x, gamma, beta, running_mean, running_var, **settings):

    if len(x) > 65535:
        raise RuntimeError("CUDNN_STATUS_NOT_SUPPORTED")
    return batch_call(x, gamma, beta, running_mean, running_var, **settings)


@formula(
    "cores-offset-by-row",
    "layer_norm",
    "reads the groups of eight cores from offsets that do not grow with the groups of each",
    "ln-core-mapping-offsets",
)
def _(rows, eps):
    xhat = (rows - mean(rows)) / np.sqrt(var(rows) + eps)
    each = -(-len(rows) // 8)
    core, row = np.divmod(np.arange(len(rows)), max(each, 1))
    return xhat[np.minimum(core + row, max(len(rows) - 1, 0))]


@formula(
    "rms-band-of-sizes",
    "rms_norm",
    "divides by half of the mean square where n is 257 to 512",
    "rms-dispatch-band-wrong-normaliser",
)
def _(rows, eps):
    part = 0.5 if 256 < rows.shape[1] <= 512 else 1
    return rows / np.sqrt(square(rows) * rows.dtype.type(part) + eps)


@formula(
    "rms-widest-rows",
    "rms_norm",
    "takes the mean square of the first 32,768 values of a group",
    "rms-large-hidden",
    conforms="no case has groups of more than 32,768 values at quick",
)
def _(rows, eps):
    return rows / np.sqrt(square(rows[:, :32768]) + eps)


@whole(
    "instance-quarter-written",
    "instance_norm",
    "writes a quarter of what is a multiple of 4: the shape is divided twice",
    "in-vec-logical-shape",
)
def _(x, gamma, beta, *, eps, channel_axis):
    y = forward("instance_norm", x, gamma, beta, eps, {"channel_axis": channel_axis})
    if y.size % 4 == 0:
        y.reshape(-1)[y.size // 4 :] = 0
    return y


@whole(
    "instance-without-places",
    "instance_norm",
    "returns zeros where x has no axes but samples and channels",
    "in-no-spatial-dims",
    "in-one-spatial-element",
)
def _(x, gamma, beta, *, eps, channel_axis):
    y = forward("instance_norm", x, gamma, beta, eps, {"channel_axis": channel_axis})
    return y * 0 if x.size == x.shape[0] * x.shape[channel_axis] else y


@whole("instance-empty-batch", "instance_norm", "raises where there is no sample", "in-empty-batch")
def _(x, gamma, beta, *, eps, channel_axis):
    if not len(x):
        raise RuntimeError("invalid configuration argument")
    return forward("instance_norm", x, gamma, beta, eps, {"channel_axis": channel_axis})


@whole("all-axes-refused", "layer_norm", "raises where all axes of x are normalised", "ln-keras-scalar-stats")
def _(x, gamma, beta, *, eps, axes):
    if len(axes) == x.ndim:
        raise ValueError("cannot reshape a tensor with 1 elements")
    return forward("layer_norm", x, gamma, beta, eps, {"axes": axes})


@whole(
    "group-size-rounded-up",
    "group_norm",
    "rounds the number of channels in a group up where groups do not divide them",
    "gn-group-size-ceil",
    conforms="no case asks for groups that do not divide the channels",
)
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": groups, "channel_axis": channel_axis}
    channels = x.shape[channel_axis]
    if channels % groups == 0:
        return forward("group_norm", x, gamma, beta, eps, settings)
    moved = np.moveaxis(x, channel_axis, 1).astype(np.float64)
    y = np.empty_like(moved)
    each = (channels - 1) // groups + 1
    for first in range(0, channels, each):
        part = moved[:, first : first + each]
        axes = tuple(range(1, moved.ndim))
        y[:, first : first + each] = (part - part.mean(axes, keepdims=True)) / np.sqrt(
            part.var(axes, keepdims=True) + eps
        )
    return np.moveaxis(y, 1, channel_axis).astype(x.dtype)


@whole(
    "groups-that-do-not-divide",
    "group_norm",
    "reshapes to groups without asking whether they divide the channels",
    "gn-nondividing-silent",
    conforms="no case asks for groups that do not divide the channels",
)
def _(x, gamma, beta, *, eps, groups, channel_axis):
    moved = np.moveaxis(x, channel_axis, 1)
    if x.shape[channel_axis] % groups == 0 or moved[0].size % groups:
        return forward("group_norm", x, gamma, beta, eps, {"groups": groups, "channel_axis": channel_axis})
    rows = moved.reshape(len(x) * groups, -1).astype(np.float64)
    y = (rows - mean(rows)) / np.sqrt(var(rows) + eps)
    return np.moveaxis(y.reshape(moved.shape), 1, channel_axis).astype(x.dtype)


@batch_norm(
    "batch-empty",
    "returns NaN for the running mean of a batch of no samples",
    "bn-empty-batch",
    conforms="what becomes of an empty batch is advice (BN-E2)",
)
def _(b):
    if not b.training or len(b.x):
        return b.results()
    return b.x, b.running_mean * np.nan, b.running_var * 0.9


@made(
    "rms-block-by-batch",
    "rms_norm",
    "adds up a group in parts of a length that the number of groups decides",
    "rms-batch-size-dependent-reduction",
    conforms="the bits of a group may depend on the batch, unless --require batch-invariant is asked for",
)
def _():
    def call(x, gamma, *, eps, axes):
        rows = lines("rms_norm", x, {"axes": axes}).rows
        block = 1024 if len(rows) < 4 else 4
        parts = [np.square(rows[:, at : at + block]).sum(1, keepdims=True) for at in range(0, rows.shape[1], block)]
        total = sum(parts[1:], parts[0]) / rows.dtype.type(rows.shape[1])
        return finished("rms_norm", x, rows / np.sqrt(total + rows.dtype.type(eps)), gamma, None, {"axes": axes})

    return call
