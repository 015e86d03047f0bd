"""
The normalisations of flax.nnx, merged with the caller's parameters.

A module is made once for its settings, without values, and merged with a call's values whenever a call is traced.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
from flax import nnx

from ...spec.operators import OPERATORS
from ..binding import Binding
from ..jax.layers import EMPTY, jitted
from ..known import KnownViolation
from .conventions import INFERENCE_ROUNDED, PARTS_ROUNDED, SOURCE, declared

#: The known violation of nnx's layers; the project's tests pin it with its numbers.
NARROWED = (
    KnownViolation(
        "CM-D1",
        "with dtype=bfloat16 the float32 parameters are rounded to bfloat16 before they are used, by promote_dtype,"
        " which flax.linen does not do; without dtype the result for 16-bit x is float32",
        links=(f"{SOURCE}nnx/nn/normalization.py (__call__ of each layer)",),
        failures=("value",),
        outputs=("dbeta",),
        dtypes=("float16", "bfloat16"),
    ),
)


@lru_cache(maxsize=256)
def _graph(kind: Any, features: int, settings: tuple[tuple[str, Any], ...]) -> Any:
    """The structure of a module with these settings."""
    return nnx.graphdef(nnx.eval_shape(lambda: kind(features, rngs=nnx.Rngs(0), **dict(settings))))


def _merged(kind: Any, features: int, variables: dict[str, nnx.Variable], **settings: Any) -> Any:
    """A module with these settings and variables; for settings that are None, Flax's defaults apply."""
    given = tuple((name, value) for name, value in settings.items() if value is not None)
    return nnx.merge(_graph(kind, features, given), nnx.State(variables))


def _parameters(gamma: Any, beta: Any) -> dict[str, nnx.Variable]:
    """gamma and beta in a module's form: along one axis."""
    given = {"scale": gamma, "bias": beta}
    return {name: nnx.Param(value.reshape(-1)) for name, value in given.items() if value is not None}


def _called(kind: Any, x: Any, gamma: Any, beta: Any, features: int, **settings: Any) -> Any:
    """Call a module of this kind and these settings on x, with only these parameters."""
    if kind is not nnx.RMSNorm:  # RMSNorm has no bias
        settings["use_bias"] = beta is not None
    given = _parameters(gamma, beta)
    return _merged(kind, features, given, dtype=x.dtype, use_scale=gamma is not None, **settings)(x)


def layer_norm(fast: bool):
    """LayerNorm by flax.nnx.LayerNorm with this setting of use_fast_variance."""

    @jitted
    def layer_norm(x, gamma, beta, *, axes, eps=None):
        over = {"reduction_axes": tuple(axes), "feature_axes": tuple(axes), "use_fast_variance": fast}
        return _called(nnx.LayerNorm, x, gamma, beta, _features(x, axes), epsilon=eps, **over)

    return layer_norm


@jitted
def _rms_norm(x, gamma, *, axes, eps=None):
    over = {"reduction_axes": tuple(axes), "feature_axes": tuple(axes)}
    return _called(nnx.RMSNorm, x, gamma, None, _features(x, axes), epsilon=eps, **over)


def _features(x: Any, axes: tuple[int, ...]) -> int:
    """How many elements x has along these axes."""
    return math.prod(x.shape[axis] for axis in axes)


def _group_norm(fast: bool):
    @jitted
    def group_norm(x, gamma, beta, *, channel_axis, groups, eps=None):
        x = jnp.moveaxis(x, channel_axis, -1)  # Flax's channels are the last axis
        over = {"num_groups": groups, "use_fast_variance": fast}
        y = _called(nnx.GroupNorm, x, gamma, beta, x.shape[-1], epsilon=eps, **over)
        return jnp.moveaxis(y, -1, channel_axis)

    return group_norm


def _instance_norm(fast: bool):
    @jitted
    def instance_norm(x, gamma, beta, *, channel_axis, eps=None):
        over = {"feature_axes": channel_axis, "use_fast_variance": fast}
        return _called(nnx.InstanceNorm, x, gamma, beta, x.shape[channel_axis], epsilon=eps, **over)

    return instance_norm


def _batch_norm(fast: bool):
    @jitted
    def batch_norm(x, gamma, beta, running_mean, running_var, *, training, channel_axis, eps=None, momentum=None):
        # Flax holds statistics of 16-bit data in float32.
        wide = jnp.promote_types(running_mean.dtype, jnp.float32)
        statistics = {
            "mean": nnx.BatchStat(running_mean.astype(wide)),
            "var": nnx.BatchStat(running_var.astype(wide)),
        }
        module = _merged(
            nnx.BatchNorm,
            x.shape[channel_axis],
            {**_parameters(gamma, beta), **statistics},
            use_running_average=not training,
            axis=channel_axis,
            epsilon=eps,
            momentum=momentum,
            dtype=x.dtype,
            use_scale=gamma is not None,
            use_bias=beta is not None,
            use_fast_variance=fast,
        )
        y = module(x)
        return y, module.mean[...].astype(running_mean.dtype), module.var[...].astype(running_var.dtype)

    return batch_norm


def _binding(operator: str, layer: str, call: Any, *, fast: bool, suffix: str = "") -> Binding:
    statistics = bool(OPERATORS[operator].statistics)
    storage = INFERENCE_ROUNDED if statistics else PARTS_ROUNDED
    known = EMPTY if statistics else NARROWED if "beta" in OPERATORS[operator].arguments else ()
    departures = declared(storage, fast=fast, statistics=statistics, known_violations=known)
    return departures.binding(operator, f"flax.nnx.{layer}{suffix}", call, defaults=call)


BINDINGS: tuple[Binding, ...] = (
    *(
        _binding(operator, layer, made(fast), fast=fast, suffix="" if fast else "(use_fast_variance=False)")
        for operator, layer, made in (
            ("layer_norm", "LayerNorm", layer_norm),
            ("batch_norm", "BatchNorm", _batch_norm),
            ("group_norm", "GroupNorm", _group_norm),
            ("instance_norm", "InstanceNorm", _instance_norm),
        )
        for fast in (True, False)
    ),
    _binding("rms_norm", "RMSNorm", _rms_norm, fast=False),  # it has no variance, so ``fast`` does not matter
)
