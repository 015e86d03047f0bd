"""LayerNorm and BatchNorm of flax.linen, applied to the parameters that are handed in."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from flax import linen

from ..binding import Binding
from ..jax.layers import EMPTY, jitted
from .conventions import PARTS_ROUNDED, declared


def _given(**values: Any) -> dict[str, Any]:
    """Those of the values that there are."""
    return {name: value for name, value in values.items() if value is not None}


def _layer_norm(fast: bool):
    @jitted
    def layer_norm(x, gamma, beta, *, axes, eps=None):
        module = linen.LayerNorm(
            dtype=x.dtype,
            use_scale=gamma is not None,
            use_bias=beta is not None,
            reduction_axes=axes,
            feature_axes=axes,
            use_fast_variance=fast,
            **_given(epsilon=eps),
        )
        return module.apply({"params": _given(scale=gamma, bias=beta)}, x)

    return layer_norm


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
            **_given(epsilon=eps, momentum=momentum),
        )
        # Flax holds statistics of 16-bit data in float32.
        wide = jnp.promote_types(running_mean.dtype, jnp.float32)
        statistics = {"mean": running_mean.astype(wide), "var": running_var.astype(wide)}
        variables = {"params": _given(scale=gamma, bias=beta), "batch_stats": statistics}
        y, updated = module.apply(variables, x, mutable=["batch_stats"])
        new: Any = updated["batch_stats"]
        return y, new["mean"].astype(running_mean.dtype), new["var"].astype(running_var.dtype)

    return batch_norm


def _binding(operator: str, layer: str, call: Any, fast: bool) -> Binding:
    conventions, reasons = declared(PARTS_ROUNDED, fast=fast, statistics=operator == "batch_norm")
    known_violations = EMPTY if operator == "batch_norm" else ()
    name = f"flax.linen.{layer}" + ("" if fast else "(use_fast_variance=False)")
    return Binding(
        operator, name, call, conventions=conventions, reasons=reasons, known_violations=known_violations, defaults=call
    )


BINDINGS: tuple[Binding, ...] = tuple(
    _binding(operator, layer, made(fast), fast)
    for operator, layer, made in (("layer_norm", "LayerNorm", _layer_norm), ("batch_norm", "BatchNorm", _batch_norm))
    for fast in (True, False)
)
