"""The normalisations of flax.linen, applied with the caller's parameters."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from flax import linen

from ...spec.operators import OPERATORS
from ..binding import Binding
from ..jax.layers import EMPTY, given, jitted
from .conventions import PARTS_ROUNDED, declared


def _applied(kind: Any, x: Any, gamma: Any, beta: Any, *, eps: float | None, **settings: Any) -> Any:
    """Apply a module of this kind and these settings to x, with only these parameters."""
    if "use_bias" in kind.__dataclass_fields__:
        settings["use_bias"] = beta is not None
    module = kind(dtype=x.dtype, use_scale=gamma is not None, **settings, **given(epsilon=eps))
    return module.apply({"params": given(scale=gamma, bias=beta)}, x)


def _layer_norm(fast: bool):
    @jitted
    def layer_norm(x, gamma, beta, *, axes, eps=None):
        over = {"reduction_axes": axes, "feature_axes": axes}
        return _applied(linen.LayerNorm, x, gamma, beta, eps=eps, use_fast_variance=fast, **over)

    return layer_norm


@jitted
def _rms_norm(x, gamma, *, axes, eps=None):
    return _applied(linen.RMSNorm, x, gamma, None, eps=eps, reduction_axes=axes, feature_axes=axes)


def _group_norm(fast: bool):
    @jitted
    def group_norm(x, gamma, beta, *, channel_axis, groups, eps=None):
        x = jnp.moveaxis(x, channel_axis, -1)  # Flax's channels are the last axis
        y = _applied(linen.GroupNorm, x, gamma, beta, eps=eps, num_groups=groups, use_fast_variance=fast)
        return jnp.moveaxis(y, -1, channel_axis)

    return group_norm


def _instance_norm(fast: bool):
    @jitted
    def instance_norm(x, gamma, beta, *, channel_axis, eps=None):
        over = {"feature_axes": channel_axis}
        return _applied(linen.InstanceNorm, x, gamma, beta, eps=eps, use_fast_variance=fast, **over)

    return instance_norm


def _batch_norm(fast: bool):
    @jitted
    def batch_norm(x, gamma, beta, running_mean, running_var, *, training, channel_axis, eps=None, momentum=None):
        module = linen.BatchNorm(
            use_running_average=not training,
            axis=channel_axis,
            dtype=x.dtype,
            use_scale=gamma is not None,
            use_bias=beta is not None,
            use_fast_variance=fast,
            **given(epsilon=eps, momentum=momentum),
        )
        # Flax holds statistics of 16-bit data in float32.
        wide = jnp.promote_types(running_mean.dtype, jnp.float32)
        statistics = {"mean": running_mean.astype(wide), "var": running_var.astype(wide)}
        variables = {"params": given(scale=gamma, bias=beta), "batch_stats": statistics}
        y, updated = module.apply(variables, x, mutable=["batch_stats"])
        new: Any = updated["batch_stats"]
        return y, new["mean"].astype(running_mean.dtype), new["var"].astype(running_var.dtype)

    return batch_norm


def _binding(operator: str, layer: str, call: Any, *, fast: bool, suffix: str = "") -> Binding:
    statistics = bool(OPERATORS[operator].statistics)
    known = EMPTY if statistics else ()
    departures = declared(PARTS_ROUNDED, fast=fast, statistics=statistics, known_violations=known)
    return departures.binding(operator, f"flax.linen.{layer}{suffix}", call, defaults=call)


BINDINGS: tuple[Binding, ...] = (
    *(
        _binding(operator, layer, made(fast), fast=fast, suffix="" if fast else "(use_fast_variance=False)")
        for operator, layer, made in (
            ("layer_norm", "LayerNorm", _layer_norm),
            ("batch_norm", "BatchNorm", _batch_norm),
            ("group_norm", "GroupNorm", _group_norm),
            ("instance_norm", "InstanceNorm", _instance_norm),
        )
        for fast in (True, False)
    ),
    _binding("rms_norm", "RMSNorm", _rms_norm, fast=False),  # it has no variance, so ``fast`` does not matter
)
