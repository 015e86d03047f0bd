"""
The built-in NumPy target: plain two-pass LayerNorm and BatchNorm with their derivatives.

Written as a careful programmer would without normspec, and independently of normspec's own reference: computed
in float32 for 16-bit data and in the data's own dtype otherwise, and rounded once at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import check_eps, check_float, like
from .groups import Affine, Array, Group, Rows, rsqrt, scaled, statistics

# LayerNorm ------------------------------------------------------------------------------------------------


def layer_norm(x, gamma, beta, *, eps, axes) -> Array:
    """y in x's shape and dtype. Raises ValueError where the arguments do not fit together."""
    group = _layer_norm_group(x, gamma, beta, eps, axes)
    return group.rows.array(group.gamma * group.xhat + group.affine.matrix(beta, 0.0), x)


def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
    """(dx, dgamma, dbeta) of sum(y * g)."""
    return _layer_norm_group(x, gamma, beta, eps, axes).vjp(x, gamma, beta, like(g, x, "g"))


def layer_norm_jvp(x, gamma, beta, tx, tgamma, tbeta, *, eps, axes) -> Array:
    """The tangent of y."""
    return _layer_norm_group(x, gamma, beta, eps, axes).jvp(x, like(tx, x, "tx"), tgamma, tbeta)


def layer_norm_vjp_vjp(x, gamma, beta, g, a, b, c, *, eps, axes):
    """(x_bar, gamma_bar, g_bar): the vjp of the vjp at cotangents (a, b, c)."""
    group = _layer_norm_group(x, gamma, beta, eps, axes)
    return group.vjp_vjp(x, gamma, like(g, x, "g"), like(a, x, "a"), b, c)


def layer_norm_jvp_vjp(x, gamma, beta, g, sx, sgamma, sbeta, *, eps, axes):
    """The tangents of (dx, dgamma, dbeta): by symmetry what the vjp of the vjp is; dbeta, a sum of g, does not move."""
    x_bar, gamma_bar, _ = layer_norm_vjp_vjp(x, gamma, beta, g, sx, sgamma, sbeta, eps=eps, axes=axes)
    return x_bar, gamma_bar, None if beta is None else np.zeros_like(beta)


def layer_norm_vjp_jvp(x, gamma, beta, tx, tgamma, tbeta, c, *, eps, axes):
    """The gradients of sum(ty * c) in x, gamma and beta."""
    return layer_norm_jvp_vjp(x, gamma, beta, c, tx, tgamma, tbeta, eps=eps, axes=axes)


def layer_norm_jvp_jvp(x, gamma, beta, tx, tgamma, tbeta, sx, sgamma, sbeta, *, eps, axes) -> Array:
    """The tangent of the tangent of y; none of it depends on beta."""
    group = _layer_norm_group(x, gamma, beta, eps, axes)
    return group.jvp_jvp(x, like(tx, x, "tx"), tgamma, like(sx, x, "sx"), sgamma)


def _layer_norm_group(x, gamma, beta, eps, axes) -> Group:
    check_float(x, "x")
    check_eps(eps)
    axes = tuple(axes)
    if not axes or axes != tuple(range(-len(axes), 0)) or len(axes) > x.ndim:
        raise ValueError(f"axes {axes} are not the trailing axes of an array of rank {x.ndim}, such as (-1,)")
    for name, parameter in (("gamma", gamma), ("beta", beta)):
        if parameter is not None:
            check_float(parameter, name)
            if parameter.shape != x.shape[x.ndim - len(axes) :]:
                raise ValueError(f"{name} has shape {parameter.shape}, not that of axes {axes} of x: {x.shape}")
    rows = Rows.of(x, tuple(range(x.ndim - len(axes), x.ndim)))
    affine = Affine(0, rows.work)
    _, d, variance = statistics(rows.matrix(x))
    r = rsqrt(variance, eps)
    return Group(rows, affine, scaled(d, r), r, affine.matrix(gamma, 1.0), constants=False)


# BatchNorm ------------------------------------------------------------------------------------------------


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    """(y, new_running_mean, new_running_var). Raises ValueError where the arguments do not fit together."""
    group, found = _batch_norm_group(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    y = group.rows.array(group.gamma * group.xhat + group.affine.matrix(beta, 0.0), x)
    if found is None:
        return y, running_mean.copy(), running_var.copy()
    mean, variance = found
    return y, _average(running_mean, mean, momentum), _average(running_var, variance, momentum)


def batch_norm_vjp(x, gamma, beta, running_mean, running_var, g, *, eps, momentum, training, channel_axis):
    """(dx, dgamma, dbeta) of sum(y * g)."""
    group, _ = _batch_norm_group(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    return group.vjp(x, gamma, beta, like(g, x, "g"))


def batch_norm_jvp(
    x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, *, eps, momentum, training, channel_axis
) -> Array:
    """The tangent of y."""
    group, _ = _batch_norm_group(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    return group.jvp(x, like(tx, x, "tx"), tgamma, tbeta)


def batch_norm_vjp_vjp(x, gamma, beta, running_mean, running_var, g, a, b, c, *, eps, momentum, training, channel_axis):
    """(x_bar, gamma_bar, g_bar): the vjp of the vjp at cotangents (a, b, c)."""
    group, _ = _batch_norm_group(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    return group.vjp_vjp(x, gamma, like(g, x, "g"), like(a, x, "a"), b, c)


def batch_norm_jvp_vjp(x, gamma, beta, running_mean, running_var, g, sx, sgamma, sbeta, **settings):
    """The tangents of (dx, dgamma, dbeta): by symmetry what the vjp of the vjp is; dbeta, a sum of g, does not move."""
    given = x, gamma, beta, running_mean, running_var, g, sx, sgamma, sbeta
    x_bar, gamma_bar, _ = batch_norm_vjp_vjp(*given, **settings)
    return x_bar, gamma_bar, None if beta is None else np.zeros_like(beta)


def batch_norm_vjp_jvp(x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, c, **settings):
    """The gradients of sum(ty * c) in x, gamma and beta."""
    return batch_norm_jvp_vjp(x, gamma, beta, running_mean, running_var, c, tx, tgamma, tbeta, **settings)


def batch_norm_jvp_jvp(
    x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, sx, sgamma, sbeta, *,
    eps, momentum, training, channel_axis,
) -> Array:  # fmt: skip
    """The tangent of the tangent of y; none of it depends on beta."""
    group, _ = _batch_norm_group(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    return group.jvp_jvp(x, like(tx, x, "tx"), tgamma, like(sx, x, "sx"), sgamma)


def _batch_norm_group(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis):
    check_float(x, "x")
    check_eps(eps)
    if not 0.0 <= momentum <= 1.0:
        raise ValueError(f"momentum is {momentum}, outside 0 to 1")
    if not -x.ndim <= channel_axis < x.ndim:
        raise ValueError(f"channel_axis {channel_axis} is no axis of an array of rank {x.ndim}")
    channel = channel_axis % x.ndim
    vectors: dict[str, Any] = {"running_mean": running_mean, "running_var": running_var}
    vectors.update({name: vector for name, vector in (("gamma", gamma), ("beta", beta)) if vector is not None})
    for name, vector in vectors.items():
        check_float(vector, name)
        if vector.shape != (x.shape[channel],):
            raise ValueError(f"{name} has shape {vector.shape}, not one entry for each of {x.shape[channel]} channels")
    rows = Rows.of(x, tuple(axis for axis in range(x.ndim) if axis != channel))
    affine = Affine(1, rows.work)
    matrix = rows.matrix(x)
    # An empty batch has no statistics of its own: the running ones stay, and y is empty.
    constants = not training or matrix.shape[1] == 0
    if constants:
        mean, variance = affine.matrix(running_mean, 0.0), affine.matrix(running_var, 1.0)
        d, found = matrix - mean, None
    else:
        mean, d, variance = statistics(matrix)
        found = mean[:, 0], variance[:, 0]
    r = rsqrt(variance, eps)
    return Group(rows, affine, scaled(d, r), r, affine.matrix(gamma, 1.0), constants), found


def _average(running: Array, new: Array, momentum: float) -> Array:
    """The exponential average; at momentum 0 or 1 a term that is not finite leaves no trace of itself."""
    if momentum == 0.0:
        return running.copy()
    if momentum == 1.0:
        return new.astype(running.dtype)
    return ((1.0 - momentum) * running.astype(new.dtype) + momentum * new).astype(running.dtype)
