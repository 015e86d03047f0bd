"""
LayerNorm and BatchNorm of flax.nnx, merged with the parameters that are handed in.

A module is made once for its settings, without values, and merged with those of the call whenever one is traced.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
from flax import nnx

from ..binding import Binding
from ..jax.layers import EMPTY, jitted
from ..known import KnownViolation
from .conventions import INFERENCE_ROUNDED, PARTS_ROUNDED, SOURCE, declared

#: What nnx's layers are known to violate; the project's tests pin it with its numbers.
NARROWED = (
    KnownViolation(
        "CM-D1",
        "with dtype=bfloat16 the float32 parameters are rounded to bfloat16 before they are used, by promote_dtype,"
        " which flax.linen does not do; without dtype the result for 16-bit x is float32",
        links=(f"{SOURCE}nnx/nn/normalization.py (LayerNorm.__call__, BatchNorm.__call__)",),
        failures=("value",),
        outputs=("dbeta",),
        dtypes=("float16", "bfloat16"),
    ),
)


@lru_cache(maxsize=256)
def _graph(kind: Any, features: int, settings: tuple[tuple[str, Any], ...]) -> Any:
    """The structure of a module of these settings."""
    return nnx.graphdef(nnx.eval_shape(lambda: kind(features, rngs=nnx.Rngs(0), **dict(settings))))


def _merged(kind: Any, features: int, variables: dict[str, nnx.Variable], **settings: Any) -> Any:
    """A module of these settings that holds these variables; settings that are None are left to Flax."""
    given = tuple((name, value) for name, value in settings.items() if value is not None)
    return nnx.merge(_graph(kind, features, given), nnx.State(variables))


def _parameters(gamma: Any, beta: Any) -> dict[str, nnx.Variable]:
    """gamma and beta as a module holds them: along one axis."""
    given = {"scale": gamma, "bias": beta}
    return {name: nnx.Param(value.reshape(-1)) for name, value in given.items() if value is not None}


def layer_norm(fast: bool):
    """LayerNorm by flax.nnx.LayerNorm with this setting of use_fast_variance."""

    @jitted
    def layer_norm(x, gamma, beta, *, axes, eps=None):
        features = 1
        for axis in axes:
            features *= x.shape[axis]
        module = _merged(
            nnx.LayerNorm,
            features,
            _parameters(gamma, beta),
            epsilon=eps,
            dtype=x.dtype,
            use_scale=gamma is not None,
            use_bias=beta is not None,
            reduction_axes=tuple(axes),
            feature_axes=tuple(axes),
            use_fast_variance=fast,
        )
        return module(x)

    return layer_norm


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


def _binding(operator: str, layer: str, call: Any, fast: bool) -> Binding:
    statistics = operator == "batch_norm"
    conventions, reasons = declared(
        INFERENCE_ROUNDED if statistics else PARTS_ROUNDED, fast=fast, statistics=statistics
    )
    name = f"flax.nnx.{layer}" + ("" if fast else "(use_fast_variance=False)")
    return Binding(
        operator,
        name,
        call,
        conventions=conventions,
        reasons=reasons,
        known_violations=EMPTY if statistics else NARROWED,
        defaults=call,
    )


BINDINGS: tuple[Binding, ...] = tuple(
    _binding(operator, layer, made(fast), fast)
    for operator, layer, made in (("layer_norm", "LayerNorm", layer_norm), ("batch_norm", "BatchNorm", _batch_norm))
    for fast in (True, False)
)
