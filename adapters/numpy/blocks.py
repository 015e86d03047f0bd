"""
Pre-norm and post-norm blocks on NumPy arrays, with their derivatives.

    pre_norm:   z = LN(x)              y = x + sublayer(z)
    post_norm:  s = x + sublayer(x)    y = LN(s)

LN is this room's own layer_norm, over the last axis. What a sublayer is to be handed it returns in x's dtype; elsewhere
it works on arrays of the dtype that is computed in, so that the result is rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arguments import check_float, like
from .arithmetic import Array, summed, widened
from .layers import layer_norm, layer_norm_jvp, layer_norm_vjp, layer_norm_vjp_vjp

#: The axes of a block's normalisation.
_LAST = (-1,)


def pre_norm(x, sublayer, gamma, beta, *, eps) -> Array:
    """y in x's shape and dtype. Raises ValueError where the arguments, or the sublayer's result, do not fit."""
    normal = layer_norm(x, gamma, beta, eps=eps, axes=_LAST)
    return summed(x, like(sublayer(normal), x, "the sublayer's result")).astype(x.dtype)


def pre_norm_vjp(x, sublayer, gamma, beta, g, *, eps):
    """(dx, dgamma, dbeta) of sum(y * g)."""
    normal = layer_norm(x, gamma, beta, eps=eps, axes=_LAST)
    h = sublayer.vjp(normal, like(g, x, "g"))
    dx, dgamma, dbeta = layer_norm_vjp(*_wide(x, gamma, beta, h), eps=eps, axes=_LAST)
    return _rounded((dx + widened(g), dgamma, dbeta), (x, gamma, beta))


def pre_norm_jvp(x, sublayer, gamma, beta, tx, tgamma, tbeta, *, eps) -> Array:
    """The tangent of y."""
    normal = layer_norm(x, gamma, beta, eps=eps, axes=_LAST)
    moved = layer_norm_jvp(x, gamma, beta, like(tx, x, "tx"), tgamma, tbeta, eps=eps, axes=_LAST)
    return summed(tx, sublayer.jvp(normal, moved)).astype(x.dtype)


def pre_norm_vjp_vjp(x, sublayer, gamma, beta, g, a, b, c, *, eps):
    """(x_bar, gamma_bar, beta_bar, g_bar): the vjp of the vjp at cotangents (a, b, c)."""
    normal = layer_norm(x, gamma, beta, eps=eps, axes=_LAST)
    h = sublayer.vjp(normal, like(g, x, "g"))
    wide = _wide(x, gamma, beta)
    x_bar, gamma_bar, h_bar = layer_norm_vjp_vjp(*wide, *_wide(h, like(a, x, "a"), b, c), eps=eps, axes=_LAST)
    z_bar, g_bar = sublayer.vjp_vjp(normal, g, h_bar.astype(x.dtype))
    x_more, gamma_more, beta_bar = layer_norm_vjp(*wide, *_wide(z_bar), eps=eps, axes=_LAST)
    gamma_bar = None if gamma_bar is None or gamma_more is None else gamma_bar + gamma_more
    return _rounded((x_bar + x_more, gamma_bar, beta_bar, summed(a, g_bar)), (x, gamma, beta, g))


def post_norm(x, sublayer, gamma, beta, *, eps) -> Array:
    """y in x's shape and dtype. Raises ValueError where the arguments, or the sublayer's result, do not fit."""
    return layer_norm(_total(x, sublayer), gamma, beta, eps=eps, axes=_LAST).astype(x.dtype)


def post_norm_vjp(x, sublayer, gamma, beta, g, *, eps):
    """(dx, dgamma, dbeta) of sum(y * g)."""
    total = _total(x, sublayer)
    ds, dgamma, dbeta = layer_norm_vjp(total, *_wide(gamma, beta, like(g, x, "g")), eps=eps, axes=_LAST)
    return _rounded((summed(ds, sublayer.vjp(x, ds.astype(x.dtype))), dgamma, dbeta), (x, gamma, beta))


def post_norm_jvp(x, sublayer, gamma, beta, tx, tgamma, tbeta, *, eps) -> Array:
    """The tangent of y."""
    moved = summed(tx, sublayer.jvp(x, like(tx, x, "tx")))
    total = _total(x, sublayer)
    return layer_norm_jvp(total, gamma, beta, moved, tgamma, tbeta, eps=eps, axes=_LAST).astype(x.dtype)


def post_norm_vjp_vjp(x, sublayer, gamma, beta, g, a, b, c, *, eps):
    """(x_bar, gamma_bar, beta_bar, g_bar): the vjp of the vjp at cotangents (a, b, c)."""
    total, (gamma_wide, beta_wide, g_wide) = _total(x, sublayer), _wide(gamma, beta, like(g, x, "g"))
    ds = layer_norm_vjp(total, gamma_wide, beta_wide, g_wide, eps=eps, axes=_LAST)[0].astype(x.dtype)
    x_bar, ds_bar = sublayer.vjp_vjp(x, ds, like(a, x, "a"))
    s_bar, gamma_bar, g_bar = layer_norm_vjp_vjp(
        total, gamma_wide, beta_wide, g_wide, summed(a, ds_bar), *_wide(b, c), eps=eps, axes=_LAST
    )
    x_bar = summed(x_bar, s_bar) + widened(sublayer.vjp(x, s_bar.astype(x.dtype)))
    # No gradient of LayerNorm depends on beta.
    beta_bar = None if beta is None else np.zeros_like(beta)
    return _rounded((x_bar, gamma_bar, beta_bar, g_bar), (x, gamma, beta, g))


def _total(x, sublayer) -> Array:
    check_float(x, "x")
    return summed(x, like(sublayer(x), x, "the sublayer's result"))


def _wide(*arrays: Any) -> list[Any]:
    return [None if array is None else widened(array) for array in arrays]


def _rounded(results: Sequence[Any], likes: Sequence[Any]) -> tuple[Any, ...]:
    """The results in the dtypes of what they are gradients of; None where that is None."""
    return tuple(None if like is None else result.astype(like.dtype) for result, like in zip(results, likes))
