"""
keras.ops.layer_normalization and rms_normalization, and batch_normalization with moments, as users write them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from keras import ops

from ..binding import Binding
from .compiled import KEPT, compiled
from .conventions import LAYER_NORM, OPS_BATCH_NORM, OPS_RMS_NORM


def _layer_norm(x, gamma, beta, *, axes, eps=None):
    return _layer_norm_of(axes, eps)(x, gamma, beta)


@lru_cache(maxsize=KEPT)
def _layer_norm_of(axes: tuple[int, ...], eps: float | None) -> Callable[..., Any]:
    return compiled(lambda x, gamma, beta: ops.layer_normalization(x, gamma, beta, axis=list(axes), epsilon=eps))


def _rms_norm(x, gamma, *, axes, eps=None):
    return _rms_norm_of(axes, eps)(x, gamma)


@lru_cache(maxsize=KEPT)
def _rms_norm_of(axes: tuple[int, ...], eps: float | None) -> Callable[..., Any]:
    return compiled(lambda x, gamma: ops.rms_normalization(x, gamma, axis=list(axes), epsilon=eps))


def _batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    run = _batch_norm_of(channel_axis % len(x.shape), eps, momentum, training)
    return run(x, gamma, beta, running_mean, running_var)


@lru_cache(maxsize=KEPT)
def _batch_norm_of(axis: int, eps: float, momentum: float, training: bool) -> Callable[..., Any]:
    def run(x, gamma, beta, running_mean, running_var):
        # x is widened to wider parameters, because no backend's kernels take two dtypes.
        wide = ops.cast(x, running_mean.dtype)
        mean, variance = running_mean, running_var
        if training:
            mean, variance = ops.moments(wide, [other for other in range(len(x.shape)) if other != axis])
            running_mean = (1 - momentum) * running_mean + momentum * mean
            running_var = (1 - momentum) * running_var + momentum * variance
        y = ops.batch_normalization(wide, mean, variance, axis, offset=beta, scale=gamma, epsilon=eps)
        return ops.cast(y, x.dtype), running_mean, running_var

    return compiled(run)


BINDINGS: tuple[Binding, ...] = (
    LAYER_NORM.binding("layer_norm", "keras.ops.layer_normalization", _layer_norm, defaults=_layer_norm),
    OPS_RMS_NORM.binding("rms_norm", "keras.ops.rms_normalization", _rms_norm, defaults=_rms_norm),
    OPS_BATCH_NORM.binding("batch_norm", "keras.ops.batch_normalization(x, *keras.ops.moments(x))", _batch_norm),
)
