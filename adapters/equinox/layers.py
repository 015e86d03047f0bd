"""
LayerNorm, RMSNorm, BatchNorm and GroupNorm of equinox, mapped over the batch axes by jax.vmap, as documented.

Each is compiled as a whole, as Equinox's documentation does with everything: no user runs single operations under two
maps. BatchNorm is used in mode "batch". Mode "ema" normalises by the running statistics in training too, which is not
the operator specified here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..binding import Binding
from ..departures import Departures
from ..jax.layers import EMPTY, given, jitted
from ..known import broadcasts_parameters

SOURCE = "https://github.com/patrick-kidger/equinox/blob/main/equinox/nn/"


def _affine(layer: Any, gamma: Any, beta: Any) -> Any:
    """A layer with both a weight and a bias set to gamma and beta; None means their initial ones and zeros."""
    like: Any = beta if gamma is None else gamma
    weight = jnp.ones_like(like) if gamma is None else gamma
    bias = jnp.zeros_like(like) if beta is None else beta
    return _lent(layer, weight, bias)


def _lent(layer: Any, weight: Any, bias: Any) -> Any:
    """A layer with this weight and this bias, either of which may be None."""
    return eqx.tree_at(lambda one: (one.weight, one.bias), layer, (weight, bias), is_leaf=lambda leaf: leaf is None)


# LayerNorm and RMSNorm ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _trailing_of(kind: Any, shape: tuple[int, ...], eps: float | None, weight: bool, bias: bool) -> Any:
    """A layer with these settings, without values."""
    return eqx.filter_eval_shape(lambda: kind(shape, use_weight=weight, use_bias=bias, **given(eps=eps)))


def _trailing(kind: Any, x: Any, gamma: Any, beta: Any, axes: tuple[int, ...], eps: float | None) -> Any:
    """Apply a layer over the last axes to x."""
    shape = tuple(x.shape[x.ndim - len(axes) :])
    layer = _lent(_trailing_of(kind, shape, eps, gamma is not None, beta is not None), gamma, beta)
    for _ in range(x.ndim - len(axes)):
        layer = jax.vmap(layer)
    return layer(x)


@jitted
def layer_norm(x, gamma, beta, *, axes, eps=None):
    """LayerNorm by equinox.nn.LayerNorm."""
    return _trailing(eqx.nn.LayerNorm, x, gamma, beta, axes, eps)


@jitted
def _rms_norm(x, gamma, *, axes, eps=None):
    return _trailing(eqx.nn.RMSNorm, x, gamma, None, axes, eps)


# GroupNorm ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _group_norm_of(groups: int, channels: int, eps: float | None, affine: bool) -> Any:
    """A layer with these settings, without values."""
    make = eqx.nn.GroupNorm
    return eqx.filter_eval_shape(lambda: make(groups, channels, channelwise_affine=affine, **given(eps=eps)))


@jitted
def _group_norm(x, gamma, beta, *, channel_axis, groups=None, eps=None):
    channels, affine = x.shape[channel_axis], gamma is not None or beta is not None
    layer = _group_norm_of(groups or channels, channels, eps, affine)
    layer = _affine(layer, gamma, beta) if affine else layer
    return jnp.moveaxis(jax.vmap(layer)(jnp.moveaxis(x, channel_axis, 1)), 1, channel_axis)


# BatchNorm ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _batch_norm_of(channels: int, dtype: Any, eps: float | None, momentum: float | None, affine: bool) -> Any:
    """A layer with these settings and its state, both with initial values."""
    with jax.ensure_compile_time_eval():  # they outlive the running transformation
        return eqx.nn.make_with_state(eqx.nn.BatchNorm)(
            channels,
            axis_name="batch",
            channelwise_affine=affine,
            dtype=dtype,
            mode="batch",
            **given(eps=eps, momentum=momentum),
        )


def _batch_norm(
    x, gamma: Any, beta: Any, running_mean, running_var, *, training, channel_axis, eps=None, momentum=None
):
    affine = gamma is not None or beta is not None
    layer, state = _batch_norm_of(x.shape[channel_axis], running_mean.dtype, eps, momentum, affine)
    layer = _affine(layer, gamma, beta) if affine else layer
    # set() invalidates the state it is called on, so a copy is changed. The count of batches stays 0, so that inference
    # uses the running statistics unchanged. After k batches it would divide them by 1 - momentum^k, as if both had
    # begun at zero; a test of the project shows the effect.
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

_SUMMED = (
    "16-bit weight and bias are broadcast over the positions before they are converted to float32, so that each term of"
    f" their gradients is rounded to 16 bits before the sum; {SOURCE}_normalisation.py (GroupNorm.__call__)"
)

_WIDENED = (
    "with float32 parameters and statistics, y for 16-bit x is float32: the result is not converted to x's dtype, as"
    f" that of LayerNorm is; {SOURCE}_batch_norm.py (_norm)"
)

#: The broadcasting that all layers but BatchNorm accept, and every block around LayerNorm.
BROADCAST = (
    broadcasts_parameters(
        "the shapes of weight and bias are not checked, and a weight of one element broadcasts",
        f"{SOURCE}_normalisation.py (LayerNorm, GroupNorm and RMSNorm, __call__)",
    ),
)

_OF_GROUPS = Departures({"storage=H2": _SUMMED}, BROADCAST)
_OF_BATCHES = Departures({"storage=native": _NATIVE, "momentum=old": _OLD, "mixed_dtypes=promoted": _WIDENED}, EMPTY)

BINDINGS: tuple[Binding, ...] = (
    *(
        Binding(operator, f"equinox.nn.{layer}", call, known_violations=BROADCAST, defaults=call)
        for operator, layer, call in (("layer_norm", "LayerNorm", layer_norm), ("rms_norm", "RMSNorm", _rms_norm))
    ),
    *(
        _OF_GROUPS.binding(operator, f"equinox.nn.{layer}", _group_norm, defaults=_group_norm)
        for operator, layer in (("group_norm", "GroupNorm"), ("instance_norm", "GroupNorm(channels, channels)"))
    ),
    _OF_BATCHES.binding(
        "batch_norm", 'equinox.nn.BatchNorm(mode="batch")', _batch_norm, accepts=_accepts, defaults=_batch_norm
    ),
)
