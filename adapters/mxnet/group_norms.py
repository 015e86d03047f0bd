"""
MXNet's GroupNorm and InstanceNorm in the canonical signatures, and the conventions that they follow.

GroupNorm's channels are axis 1: x's channel axis is moved there, and y's back. In MXNet 1.9 GroupNorm has one gamma and
one beta per group, not per channel. So gamma and beta are applied after it, as users do who want them per channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import mxnet as mx
from mxnet.gluon import nn

from ..binding import Binding
from ..departures import Departures
from ..known import KnownViolation
from .layers import SOURCE, affine


def _group_norm(x, gamma, beta, *, eps, groups, channel_axis):
    layer = _group_norm_of(groups, eps)
    y = layer.hybrid_forward(mx.nd, mx.nd.moveaxis(x, channel_axis, 1), *affine(None, None, x, groups))
    spread = (1, -1, *(1,) * (len(x.shape) - 2))
    if gamma is not None:
        y = mx.nd.broadcast_mul(y, gamma.reshape(spread))
    if beta is not None:
        y = mx.nd.broadcast_add(y, beta.reshape(spread))
    return mx.nd.moveaxis(y, 1, channel_axis)


@lru_cache(maxsize=256)
def _group_norm_of(groups: int, eps: float) -> Any:
    return nn.GroupNorm(num_groups=groups, epsilon=eps, scale=False, center=False)


def _instance_norm(x, gamma, beta, *, eps, channel_axis):
    channels = x.shape[channel_axis]
    layer = _instance_norm_of(channels, channel_axis % len(x.shape), eps, gamma is not None, beta is not None)
    return layer.hybrid_forward(mx.nd, x, *affine(gamma, beta, x, channels))


@lru_cache(maxsize=256)
def _instance_norm_of(channels: int, axis: int, eps: float, scale: bool, center: bool) -> Any:
    return nn.InstanceNorm(axis=axis, epsilon=eps, scale=scale, center=center, in_channels=channels)


def _accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """The ``accepts`` of both layers: x needs an axis of positions besides samples and channels."""
    return None if len(shape) >= 3 else f"it takes rank 3 or more, not {len(shape)}"


def _accepts_samples(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """The ``accepts`` of InstanceNorm: without a sample it divides integers by 0, which may end the process."""
    return (
        _accepts(shape, settings)
        if shape[0]
        else "InstanceNorm may end the process (SIGFPE) where there are no samples"
    )


_GROUP_NORM = f"{SOURCE}nn/group_norm-inl.h"

_OF_GROUPS = Departures(
    {
        "eps_dtype=float32": f"eps is a parameter of type float, which is a float32; {_GROUP_NORM} (GroupNormParam)",
        "storage=native": (
            "for float16 data the saved mean and deviation, and every step on x, are float16; "
            f"{_GROUP_NORM} (GroupNormCompute)"
        ),
    },
    known_violations=(
        KnownViolation(
            "CM-S2",
            "a batch without samples raises 'Shape size mismatch'",
            links=(f"{_GROUP_NORM} (GroupNormCompute)",),
            failures=("raises",),
        ),
    ),
)

_OF_SAMPLES = Departures(
    {
        "eps_dtype=float32": (
            f"eps is a parameter of type float, which is a float32; {SOURCE}instance_norm-inl.h (InstanceNormParam)"
        )
    }
)

BINDINGS: tuple[Binding, ...] = (
    _OF_GROUPS.binding("group_norm", "mxnet.gluon.nn.GroupNorm(x) * gamma + beta", _group_norm, accepts=_accepts),
    _OF_SAMPLES.binding("instance_norm", "mxnet.gluon.nn.InstanceNorm", _instance_norm, accepts=_accepts_samples),
)
