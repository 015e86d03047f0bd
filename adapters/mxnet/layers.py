"""
MXNet's LayerNorm and BatchNorm in the canonical signatures, and the conventions that they follow.

A Gluon layer gets the caller's tensors in place of its own parameters, so that gradients reach them. A gamma of None
means what ``scale=False`` does: ones, with ``fix_gamma`` in BatchNorm.

BatchNorm writes its moving averages in the backward pass, not in the forward pass. So a second forward pass and its
backward pass run on copies of the given averages, and what they leave there is returned as the new averages. For
float16 data BatchNorm takes only float32 parameters and statistics, as Gluon also makes them: float16 ones are cast to
float32 and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.gluon import nn

from ..binding import Binding
from ..departures import Departures
from ..known import Failure, KnownViolation, momentum_in_float32

SOURCE = "https://github.com/apache/mxnet/blob/v1.9.x/src/operator/"

# LayerNorm ------------------------------------------------------------------------------------------------


def affine(gamma: Any, beta: Any, like: Any, size: int) -> tuple[Any, Any]:
    """gamma and beta, with ones and zeros in place of None."""
    made = {"ctx": like.ctx, "dtype": like.dtype}
    return (
        mx.nd.ones((size,), **made) if gamma is None else gamma,
        mx.nd.zeros((size,), **made) if beta is None else beta,
    )


def function_layer_norm(x, gamma, beta, *, eps, axes):
    """mx.nd.LayerNorm over the last axis."""
    del axes
    return mx.nd.LayerNorm(x, *affine(gamma, beta, x, x.shape[-1]), axis=-1, eps=eps)


def gluon_layer_norm(x, gamma, beta, *, eps, axes):
    """gluon.nn.LayerNorm over the last axis."""
    del axes
    layer = _layer_norm_of(x.shape[-1], eps, gamma is not None, beta is not None)
    return layer.hybrid_forward(mx.nd, x, *affine(gamma, beta, x, x.shape[-1]))


@lru_cache(maxsize=256)
def _layer_norm_of(size: int, eps: float, scale: bool, center: bool) -> Any:
    return nn.LayerNorm(epsilon=eps, scale=scale, center=center, in_channels=size)


# BatchNorm ------------------------------------------------------------------------------------------------


def _function_batch_norm(x, gamma, beta, running_mean, running_var, *, mode, **settings):
    def operator_of(channels: int, **attributes: Any) -> Callable[..., Any]:
        del channels
        return lambda *tensors: mx.nd.BatchNorm(*tensors, fix_gamma=gamma is None, **attributes)

    return _batch_norm(operator_of, x, gamma, beta, running_mean, running_var, mode=mode, **settings)


def _gluon_batch_norm(x, gamma, beta, running_mean, running_var, *, mode, **settings):
    def operator_of(
        channels: int, *, axis: int, momentum: float, eps: float, use_global_stats: bool
    ) -> Callable[..., Any]:
        layer = _batch_norm_of(channels, axis, momentum, eps, use_global_stats, gamma is not None, beta is not None)
        return lambda *tensors: layer.hybrid_forward(mx.nd, *tensors)

    return _batch_norm(operator_of, x, gamma, beta, running_mean, running_var, mode=mode, **settings)


@lru_cache(maxsize=256)
def _batch_norm_of(
    channels: int, axis: int, momentum: float, eps: float, use_global_stats: bool, scale: bool, center: bool
) -> Any:
    return nn.BatchNorm(
        axis=axis,
        momentum=momentum,
        epsilon=eps,
        scale=scale,
        center=center,
        use_global_stats=use_global_stats,
        in_channels=channels,
    )


def _batch_norm(
    operator_of: Callable[..., Any],
    x,
    gamma,
    beta,
    running_mean,
    running_var,
    *,
    eps,
    momentum,
    training,
    channel_axis,
    mode,
):
    wide = np.float32 if x.dtype == np.float16 else x.dtype
    gamma, beta = (None if one is None else one.astype(wide, copy=False) for one in (gamma, beta))
    parameters = affine(gamma, beta, running_mean.astype(wide), running_mean.shape[0])
    # The code that starts the backward pass sets its mode. So inference that will be differentiated sets
    # use_global_stats; other inference is a forward pass in predict mode.
    operator = operator_of(
        running_mean.shape[0],
        axis=channel_axis,
        momentum=momentum,
        eps=eps,
        use_global_stats=not training and mode == "training",
    )
    mean, variance = running_mean.astype(wide), running_var.astype(wide)
    y = operator(x, *parameters, mean, variance)
    if training:
        mean, variance = running_mean.astype(wide), running_var.astype(wide)
        _step(operator, x.detach(), [one.detach() for one in parameters], mean, variance)
    return y, mean.astype(running_mean.dtype), variance.astype(running_var.dtype)


def _step(operator: Callable[..., Any], x: Any, parameters: Any, mean: Any, variance: Any) -> None:
    """A forward and a backward pass; the backward pass writes the moving averages."""
    x.attach_grad()
    with autograd.record(train_mode=True):
        y = operator(x, *parameters, mean, variance)
    y.backward()


# Bindings -------------------------------------------------------------------------------------------------

#: Why a sum with a 16-bit number is a 16-bit number, whatever the other one is.
_HALF = "https://github.com/apache/mxnet/blob/v1.9.x/3rdparty/mshadow/mshadow/half.h (MSHADOW_HALF_OPERATOR)"

#: What LayerNorm declares, and every layer that contains one.
LAYER_NORM = Departures(
    {
        "eps_dtype=float32": (
            f"eps is a parameter of type float, which is a float32; {SOURCE}nn/layer_norm-inl.h (LayerNormParam)"
        ),
        "storage=native": (
            "for float16 data eps, the saved mean and deviation, and every step of the backward pass are float16; "
            f"{SOURCE}nn/layer_norm_cpu.h (LayerNormCPUKernel), {SOURCE}nn/layer_norm-inl.h"
            " (LayerNormGradComputeGeneral)"
        ),
    },
    known_violations=(
        KnownViolation(
            "CM-S2",
            "the backward pass of an empty batch raises 'Shape size mismatch 0 v.s. 1', the forward pass does not",
            links=(f"{SOURCE}nn/layer_norm-inl.h (LayerNormGradComputeGeneral)",),
            failures=("raises",),
            outputs=("gradient",),
        ),
    ),
)

#: Why the running variance is wrong; the project's tests pin it with its numbers.
_INVERTED = (
    "the variance of the moving average is recovered from the saved reciprocal root as 1 / r^2 - eps, which has lost"
    " its digits where it is small compared with eps, and may be negative, or infinite for a constant channel where eps"
    " is 0"
)


def _off_by_eps(failure: Failure) -> Any:
    """Which errors of the running variance come from computing it as 1/r^2 - eps, in up to three steps."""
    assert failure.got is not None and failure.expected is not None
    x, axis, eps = failure.inputs["x"], failure.settings["channel_axis"], failure.settings["eps"]
    old = failure.inputs["running_var"]
    assert x is not None and old is not None
    rows = np.moveaxis(np.asarray(x, np.float64), axis, 0).reshape(x.shape[axis], -1)
    variance, unit = rows.var(axis=1), 2.0**-53 if old.dtype == np.float64 else 2.0**-24
    # The root, its reciprocal, the square, and eps in float32; the weights are float32 numbers (BN-S1).
    sizes = np.abs(np.asarray(old, np.float64)) + variance + np.abs(failure.expected)
    bound = 16 * unit * (variance + eps) + 2.0**-24 * eps + (unit if unit > 2.0**-50 else 2.0**-24) * sizes
    with np.errstate(invalid="ignore"):
        near = np.abs(failure.got - failure.expected) <= bound
    return near | (~np.isfinite(failure.got) & (variance + eps == 0))


_BATCH_NORM = Departures(
    {
        "momentum=old": (
            "moving_mean = moving_mean * momentum + data_mean * (1 - momentum); "
            "https://mxnet.apache.org/versions/1.9.1/api/python/docs/api/gluon/nn/index.html#mxnet.gluon.nn.BatchNorm"
        ),
        "storage=native": (
            "for float16 data eps and var + eps are rounded to float16, so that a variance above 65504 makes y beta,"
            " and the backward pass holds a part of dx in float16;"
            f" {SOURCE}nn/batch_norm.cc (VARIANCE_TO_INVSTD), {_HALF}"
        ),
    },
    known_violations=(
        momentum_in_float32(
            "BN-S1",
            "momentum is a parameter of type float, so that the weights of the moving average are float32 numbers, also"
            " where the statistics are float64",
            f"{SOURCE}nn/batch_norm-inl.h (BatchNormParam)",
            outputs=("new_running_mean",),
        ),
        *(
            KnownViolation(
                one,
                _INVERTED,
                links=(f"{SOURCE}nn/batch_norm.cc (INVSTD_TO_VARIANCE)",),
                failures=("value", "infinite", "nan"),
                outputs=("new_running_var",),
                dtypes=("float32", "float64"),
                modes=("training",),
                where="off by no more than a few roundings of var + eps, or infinite or NaN where both are 0",
                predicts=_off_by_eps,
                always=False,  # it does not show if eps is small compared with the variance
            )
            for one in ("BN-S2", "BN-S3", "BN-S4", "CM-P2")
        ),
    ),
)


def _last_axis(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    axes = settings.get("axes", (-1,))
    return None if len(axes) == 1 else f"LayerNorm normalises over one axis, not over {len(axes)}"


BINDINGS: tuple[Binding, ...] = (
    LAYER_NORM.binding("layer_norm", "mxnet.gluon.nn.LayerNorm", gluon_layer_norm, accepts=_last_axis),
    LAYER_NORM.binding("layer_norm", "mxnet.nd.LayerNorm", function_layer_norm, accepts=_last_axis),
    _BATCH_NORM.binding("batch_norm", "mxnet.gluon.nn.BatchNorm", _gluon_batch_norm, has_modes=True),
    _BATCH_NORM.binding("batch_norm", "mxnet.nd.BatchNorm", _function_batch_norm, has_modes=True),
)
