"""
LayerNorm and BatchNorm of equinox, over the axes of a batch by jax.vmap, as they are documented.

Each is compiled as a whole, as Equinox's documentation does with everything: under two maps, an operation at a time
would be compiled for nobody. BatchNorm is taken in mode "batch". Mode "ema" normalises in training by the running
statistics, which is another operator than the one that is specified here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..binding import Binding
from ..jax.layers import EMPTY
from ..known import ONE_OF, KnownViolation

SOURCE = "https://github.com/patrick-kidger/equinox/blob/main/equinox/nn/"


def _given(**values: Any) -> dict[str, Any]:
    """Those of the values that there are."""
    return {name: value for name, value in values.items() if value is not None}


# LayerNorm ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _layer_norm_of(shape: tuple[int, ...], eps: float | None, weight: bool, bias: bool) -> Any:
    """A layer of these settings, without values."""
    make = eqx.nn.LayerNorm
    return eqx.filter_eval_shape(lambda: make(shape, use_weight=weight, use_bias=bias, **_given(eps=eps)))


@partial(jax.jit, static_argnames=("axes", "eps"))
def layer_norm(x, gamma, beta, *, axes, eps=None):
    """LayerNorm by equinox.nn.LayerNorm."""
    shape = tuple(x.shape[x.ndim - len(axes) :])
    layer = _layer_norm_of(shape, eps, gamma is not None, beta is not None)
    layer = eqx.tree_at(lambda one: (one.weight, one.bias), layer, (gamma, beta), is_leaf=lambda leaf: leaf is None)
    for _ in range(x.ndim - len(axes)):
        layer = jax.vmap(layer)
    return layer(x)


# BatchNorm ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _batch_norm_of(channels: int, dtype: Any, eps: float | None, momentum: float | None, affine: bool) -> Any:
    """A layer of these settings and its state, with the values that they begin with."""
    with jax.ensure_compile_time_eval():  # they outlive the transformation that is under way
        return eqx.nn.make_with_state(eqx.nn.BatchNorm)(
            channels,
            axis_name="batch",
            channelwise_affine=affine,
            dtype=dtype,
            mode="batch",
            **_given(eps=eps, momentum=momentum),
        )


def _batch_norm(
    x, gamma: Any, beta: Any, running_mean, running_var, *, training, channel_axis, eps=None, momentum=None
):
    affine = gamma is not None or beta is not None
    layer, state = _batch_norm_of(x.shape[channel_axis], running_mean.dtype, eps, momentum, affine)
    if affine:  # both or none: what is not given is what it would be at the beginning
        given: Any = beta if gamma is None else gamma
        weight = jnp.ones_like(given) if gamma is None else gamma
        bias = jnp.zeros_like(given) if beta is None else beta
        layer = eqx.tree_at(lambda one: (one.weight, one.bias), layer, (weight, bias))
    # set() takes the state that it is called on out of use: a copy of it is changed. Its count of batches stays 0, so
    # that inference takes the running statistics as they are. After k batches it would divide them by
    # 1 - momentum^k, as though both had begun at zero: a test of the project shows what comes of that.
    state = jax.tree.map(lambda leaf: leaf, state).set(layer.batch_state_index, (running_mean, running_var))
    mapped = jax.vmap(
        lambda sample: layer(sample, state, inference=not training), axis_name="batch", out_axes=(0, None)
    )
    y, state = mapped(jnp.moveaxis(x, channel_axis, 1))
    return jnp.moveaxis(y, 1, channel_axis), *state.get(layer.batch_state_index)


def _accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    if len(shape) < 2:
        return f"equinox.nn.BatchNorm takes rank 2 or more, not {len(shape)}"
    return None


_OLD = (
    "momentum is the rate at which the running statistics are kept, so the weight of the old one;"
    " https://docs.kidger.site/equinox/api/nn/normalisation/#equinox.nn.BatchNorm"
)

_NATIVE = (
    "statistics are formed in x's dtype: the mean over the batch, the squares and the variance are rounded to 16 bits;"
    f" {SOURCE}_batch_norm.py (_stats)"
)

_WIDENED = (
    "with float32 parameters and statistics, y for 16-bit x is float32: the result is not converted to x's dtype, as"
    f" that of LayerNorm is; {SOURCE}_batch_norm.py (_norm)"
)

#: What LayerNorm lets pass, and every block around it.
BROADCAST = (
    KnownViolation(
        "CM-A1",
        "the shapes of weight and bias are annotated and not checked, and a weight of one element broadcasts",
        links=(f"{SOURCE}_normalisation.py (LayerNorm.__call__)",),
        failures=("accepts",),
        notes=(ONE_OF["gamma"], ONE_OF["beta"]),
    ),
)

BINDINGS: tuple[Binding, ...] = (
    Binding("layer_norm", "equinox.nn.LayerNorm", layer_norm, known_violations=BROADCAST, defaults=layer_norm),
    Binding(
        "batch_norm",
        'equinox.nn.BatchNorm(mode="batch")',
        _batch_norm,
        conventions={"storage": "native", "momentum": "old", "mixed_dtypes": "promoted"},
        reasons={"storage": _NATIVE, "momentum": _OLD, "mixed_dtypes": _WIDENED},
        known_violations=EMPTY,
        accepts=_accepts,
        defaults=_batch_norm,
    ),
)
