"""
BatchNorm by tf.compat.v1.nn.fused_batch_norm: one kernel, with a backward kernel of its own.

It takes x with four axes and the channels last; its parameters and statistics are float32 for any dtype of x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ...spec.errors import Unsupported
from ..binding import Binding
from ..departures import Departures
from .moments import SOURCE, move_axis

_NAME = "tf.compat.v1.nn.fused_batch_norm"

_KERNEL = f"{SOURCE}core/kernels/fused_batch_norm_op.cc"

_DEPARTURES = Departures(
    {
        "running_variance=bessel": (
            "the variance in the moving average is the unbiased one, although the batch is normalised by the biased"
            f" one; {_KERNEL} (rest_size_adjust) and https://github.com/tensorflow/tensorflow/issues/55545"
        ),
    }
)


def _fused_batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    if x.dtype == tf.float64:
        raise Unsupported(f"{_NAME} takes float16, bfloat16 and float32, not float64")
    channels = x.shape[channel_axis]
    y, new_mean, new_var = tf.compat.v1.nn.fused_batch_norm(
        move_axis(x, channel_axis, -1),
        tf.ones([channels]) if gamma is None else tf.cast(gamma, tf.float32),
        tf.zeros([channels]) if beta is None else tf.cast(beta, tf.float32),
        # With a factor of 1 nothing is averaged, and the kernel refuses a statistic that it would not use.
        None if training and momentum == 1 else tf.cast(running_mean, tf.float32),
        None if training and momentum == 1 else tf.cast(running_var, tf.float32),
        epsilon=eps,
        is_training=training,
        exponential_avg_factor=momentum if training else 1.0,
    )
    y = move_axis(y, -1, channel_axis)
    if not training:
        return y, running_mean, running_var
    return y, tf.cast(new_mean, running_mean.dtype), tf.cast(new_var, running_var.dtype)


def _accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    return None if len(shape) == 4 else f"{_NAME} takes rank 4, not {len(shape)}"


BINDINGS: tuple[Binding, ...] = (_DEPARTURES.binding("batch_norm", _NAME, _fused_batch_norm, accepts=_accepts),)
