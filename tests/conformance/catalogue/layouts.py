"""Strides, offsets and alignment."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .gradients import batch_call, batch_gradients, right_batch
from .memory import as_if_contiguous, packed, without_offset
from .plain import batch, finished, forward, lines
from .written import batch_norm, made, whole


@whole(
    "offset-ignored", "layer_norm", "reads x from the beginning of its memory, wherever it begins", "ln-storage-offset"
)
def _(x, gamma, beta, *, eps, axes):
    return forward("layer_norm", without_offset(x), gamma, beta, eps, {"axes": axes})


@whole("strides-ignored", "layer_norm", "reads x as if it were contiguous", "ln-noncontiguous")
def _(x, gamma, beta, *, eps, axes):
    return forward("layer_norm", as_if_contiguous(x), gamma, beta, eps, {"axes": axes})


@whole("loads-of-four", "layer_norm", "begins to read each group at a multiple of four values", "ln-vector-alignment")
def _(x, gamma, beta, *, eps, axes):
    n = lines("layer_norm", x, {"axes": axes}).rows.shape[1]
    flat = x.reshape(-1)
    starts = np.arange(flat.size // n) * n // 4 * 4
    read = flat[np.minimum(starts[:, None] + np.arange(n), flat.size - 1)]
    return forward("layer_norm", read.reshape(x.shape), gamma, beta, eps, {"axes": axes})


@batch_norm(
    "batch-permuted-input",
    "reads x as if it were contiguous in inference",
    "bn-permuted-input",
    "bn-channels-last-forward",
)
def _(b):
    if b.training or b.given.flags.c_contiguous:
        return b.results()
    return batch_of(b, as_if_contiguous(b.given)).results()


def batch_of(b, x):
    """The steps of the same call on another x."""
    settings = {"eps": float(b.eps), "momentum": b.momentum, "training": b.training, "channel_axis": b.channel_axis}
    return batch(x, b.gamma, b.beta, b.running_mean, b.running_var, settings)


@batch_norm(
    "batch-coarse-with-channels-last",
    "rounds x to bfloat16 where it lies with its channels last",
    "bn-xpu-channels-last-large-std",
)
def _(b):

    last = b.given.ndim > 2 and b.channel_axis % b.given.ndim == b.given.ndim - 1
    return batch_of(b, b.given.astype(ml_dtypes.bfloat16).astype(b.given.dtype) if last else b.given).results()


@made(
    "batch-gradient-strides",
    "batch_norm",
    "reads x as if it were contiguous in the backward pass",
    "bn-channels-last-backward",
)
def _():

    right = batch_gradients(right_batch)
    return batch_call, {"vjp": lambda x, *rest, **settings: right(as_if_contiguous(x), *rest, **settings)}


@whole(
    "rms-strides-in-the-first-pass",
    "rms_norm",
    "uses the strides for the mean square, and not for the values",
    "rms-last-dim-stride-ignored-in-second-pass",
)
def _(x, gamma, *, eps, axes):
    settings = {"axes": axes}
    root = np.sqrt(np.square(lines("rms_norm", x, settings).rows).mean(1, keepdims=True) + np.float32(eps))
    return finished("rms_norm", x, lines("rms_norm", as_if_contiguous(x), settings).rows / root, gamma, None, settings)


def _packed_rows(x, gamma, *, eps, axes):
    n = lines("rms_norm", x, {"axes": axes}).rows.shape[1]
    read = x
    if x.ndim > 1 and x.size and x.strides[-1] == x.itemsize and not x.flags.c_contiguous:
        read = packed(x, 0, (x.size // n, n)).reshape(x.shape)
    return forward("rms_norm", read, gamma, None, eps, {"axes": axes})


whole(
    "rms-rows-packed",
    "rms_norm",
    "takes the groups of a slice to lie one after the other",
    "rms-rows-assumed-packed",
    "rms-stride0-used-for-flattened-rows",
)(_packed_rows)


@whole(
    "rms-strides-of-x-kept",
    "rms_norm",
    "writes packed values into an array with x's strides",
    "rms-output-inherits-strides",
)
def _(x, gamma, *, eps, axes):
    y = np.empty_like(x)
    right = forward("rms_norm", x, gamma, None, eps, {"axes": axes})
    return np.ndarray(y.shape, y.dtype, right.reshape(-1).tobytes(), strides=y.strides).copy() if y.size else y


@whole("rms-gain-packed", "rms_norm", "reads gamma as if it were contiguous", "rms-gamma-stride-ignored")
def _(x, gamma, *, eps, axes):
    return forward("rms_norm", x, None if gamma is None else as_if_contiguous(gamma), None, eps, {"axes": axes})


@whole(
    "group-channels-last-alone",
    "group_norm",
    "takes the statistics of the channel before, where each channel is a group and the channels are last",
    "in-channels-last-one-channel-per-group",
)
def _(x, gamma, beta, *, eps, groups, channel_axis):
    settings = {"groups": groups, "channel_axis": channel_axis}
    rows = lines("group_norm", x, settings).rows
    centre, spread = rows.mean(1, keepdims=True), rows.var(1, keepdims=True)
    if groups == x.shape[channel_axis] and channel_axis % x.ndim == x.ndim - 1:
        centre, spread = np.roll(centre, 1), np.roll(spread, 1)
    return finished("group_norm", x, (rows - centre) / np.sqrt(spread + rows.dtype.type(eps)), gamma, beta, settings)
