"""
Keras's layers LayerNormalization, RMSNormalization, BatchNormalization and GroupNormalization, in canonical calls.

A layer is made once for a configuration, with a policy for the dtypes of its calls. Each call lends it its weights in a
StatelessScope, so that gradients reach the caller's tensors. The layer's own weights are never read or assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import keras
from keras import ops

from ..binding import Binding
from ..departures import Departures
from .compiled import KEPT, compiled
from .conventions import BATCH_NORM, GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM


def policy(x: Any, *weights: Any) -> str:
    """The name of the dtype policy for a layer with this x and these weights; a weight it lacks is None."""
    compute = keras.backend.standardize_dtype(x.dtype)
    kept = {keras.backend.standardize_dtype(weight.dtype) for weight in weights if weight is not None}
    return compute if kept <= {compute} else f"mixed_{compute}"


def _lent(weights: Sequence[tuple[Any, Any]]) -> keras.StatelessScope:
    """A scope in which a layer's variables have these values; a variable that it lacks is None."""
    return keras.StatelessScope([(variable, value) for variable, value in weights if variable is not None])


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that are not None; for the others Keras's defaults apply."""
    return {name: value for name, value in settings.items() if value is not None}


# LayerNormalization ---------------------------------------------------------------------------------------


def layer_norm(x, gamma, beta, *, axes, mode, eps=None):
    """LayerNorm by keras.layers.LayerNormalization, in training or inference mode."""
    sizes, given = tuple(x.shape[axis] for axis in axes), (gamma is not None, beta is not None)
    run = _layer_norm_of(sizes, axes, eps, given, policy(x, gamma, beta), mode == "training")
    return run(x, gamma, beta)


@lru_cache(maxsize=KEPT)
def _layer_norm_of(
    sizes: tuple[int, ...],
    axes: tuple[int, ...],
    eps: float | None,
    given: tuple[bool, bool],
    dtype: str,
    training: bool,
) -> Callable[..., Any]:
    scale, center = given
    layer = keras.layers.LayerNormalization(list(axes), center=center, scale=scale, dtype=dtype, **_given(epsilon=eps))
    layer.build(sizes)

    return _with_parameters(layer, training)


def _with_parameters(layer: Any, training: bool) -> Callable[..., Any]:
    """A function of x, gamma and beta that calls a layer."""

    def run(x, gamma, beta):
        with _lent([(layer.gamma, gamma), (layer.beta, beta)]):
            return layer(x, training=training)

    return compiled(run)


# RMSNormalization -----------------------------------------------------------------------------------------


def _rms_norm(x, gamma, *, axes, mode, eps=None):
    # The layer always has a gain, initially ones.
    sizes = tuple(x.shape[axis] for axis in axes)
    gamma = ops.ones(sizes, x.dtype) if gamma is None else gamma
    return _rms_norm_of(sizes, axes, eps, policy(x, gamma), mode == "training")(x, gamma)


@lru_cache(maxsize=KEPT)
def _rms_norm_of(
    sizes: tuple[int, ...], axes: tuple[int, ...], eps: float | None, dtype: str, training: bool
) -> Callable[..., Any]:
    layer = keras.layers.RMSNormalization(list(axes), dtype=dtype, **_given(epsilon=eps))
    layer.build(sizes)

    def run(x, gamma):
        with _lent([(layer.scale, gamma)]):
            return layer(x, training=training)

    return compiled(run)


# BatchNormalization ---------------------------------------------------------------------------------------


def _batch_norm(x, gamma, beta, running_mean, running_var, *, training, channel_axis, mode, eps=None, momentum=None):
    del mode  # `training` decides
    shape = [1] * len(x.shape)
    shape[channel_axis] = x.shape[channel_axis]
    given, dtype = (gamma is not None, beta is not None), policy(x, gamma, beta, running_mean, running_var)
    run = _batch_norm_of(tuple(shape), channel_axis, eps, momentum, given, dtype, training)
    return run(x, gamma, beta, running_mean, running_var)


@lru_cache(maxsize=KEPT)
def _batch_norm_of(
    shape: tuple[int, ...],
    axis: int,
    eps: float | None,
    momentum: float | None,
    given: tuple[bool, bool],
    dtype: str,
    training: bool,
) -> Callable[..., Any]:
    scale, center = given
    layer = keras.layers.BatchNormalization(
        axis, center=center, scale=scale, dtype=dtype, **_given(epsilon=eps, momentum=momentum)
    )
    layer.build(shape)
    mean, variance = layer.moving_mean, layer.moving_variance

    def run(x, gamma, beta, running_mean, running_var):
        weights = [(layer.gamma, gamma), (layer.beta, beta), (mean, running_mean), (variance, running_var)]
        with _lent(weights) as scope:
            y = layer(x, training=training)
        return y, scope.get_current_value(mean), scope.get_current_value(variance)

    return compiled(run)


# GroupNormalization ---------------------------------------------------------------------------------------


def _group_norm(x, gamma, beta, *, channel_axis, mode, groups, eps=None):
    shape = [None] * len(x.shape)
    shape[channel_axis] = x.shape[channel_axis]
    given, dtype = (gamma is not None, beta is not None), policy(x, gamma, beta)
    run = _group_norm_of(tuple(shape), channel_axis, groups, eps, given, dtype, mode == "training")
    return run(x, gamma, beta)


def _instance_norm(x, gamma, beta, **settings):
    return _group_norm(x, gamma, beta, groups=-1, **settings)


@lru_cache(maxsize=KEPT)
def _group_norm_of(
    shape: tuple[int | None, ...],
    axis: int,
    groups: int,
    eps: float | None,
    given: tuple[bool, bool],
    dtype: str,
    training: bool,
) -> Callable[..., Any]:
    scale, center = given
    layer = keras.layers.GroupNormalization(
        groups, axis, center=center, scale=scale, dtype=dtype, **_given(epsilon=eps)
    )
    layer.build(shape)

    return _with_parameters(layer, training)


def _binding(operator: str, name: str, call: Callable[..., Any], departures: Departures) -> Binding:
    return departures.binding(operator, f"keras.layers.{name}", call, has_modes=True, defaults=call)


BINDINGS: tuple[Binding, ...] = (
    _binding("layer_norm", "LayerNormalization", layer_norm, LAYER_NORM),
    _binding("rms_norm", "RMSNormalization", _rms_norm, RMS_NORM),
    _binding("batch_norm", "BatchNormalization", _batch_norm, BATCH_NORM),
    _binding("group_norm", "GroupNormalization", _group_norm, GROUP_NORM),
    _binding("instance_norm", "GroupNormalization(groups=-1)", _instance_norm, INSTANCE_NORM),
)
