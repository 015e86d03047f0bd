"""BatchNorm, exactly: y = gamma (x - mean) / sqrt(var + eps) + beta, channel by channel.

x has at least two axes, with the channels along `channel_axis`, which may be negative; gamma and beta have
shape (channels,) or are None (ones, zeros); running_mean and running_var have shape (channels,).
In training, each channel is normalised by its own mean and biased variance, and the running statistics
move by `momentum`, the weight of the new value. In inference the running statistics serve as mean and
variance; every derivative treats them as constants, and they are returned as given. Each array may be
float16, bfloat16, float32 or float64, is taken exactly as given and is never written to.

The functions named `*_exact` return double-doubles (DD); those without take the same arguments and
return float64 arrays, rounded once from them. Nothing overflows or underflows on the way. A NaN or
infinity in a channel makes its training y NaN and leaves other channels alone; eps = 0 on a channel
without variance is 0/0, NaN. With no values in a channel y is empty, the running statistics are
returned as given and parameter gradients are zero.

All raise ValueError for an unsuitable dtype, shape, axis, eps (finite, at least 0) or momentum (0 to 1).

Source: Ioffe, Szegedy, "Batch Normalization" (2015), arXiv:1502.03167, algorithm 1; the running
statistics are an exponential moving average of the mean and the biased variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..spec.layout import Layout
from . import rows
from .arguments import channel_from_front, checked_floats, nonnegative
from .double_double import DD
from .normalisation import Normalisation
from .rounding import rounded
from .scaled import Scaled


@np.errstate(all="ignore")
def batch_norm_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, running_mean: ArrayLike, running_var: ArrayLike, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> tuple[DD, DD, DD]:  # fmt: skip
    """Return (y, new_running_mean, new_running_var); y = gamma xhat + beta has x's shape.

    xhat = (x - mean) / sqrt(var + eps); new = (1 - momentum) running + momentum statistic.
    """
    found = _normalised(x, gamma, beta, running_mean, running_var, eps, training, channel_axis)
    weight = Scaled.of(nonnegative("momentum", momentum, most=1.0))
    old = found.statistic("running_mean", running_mean), found.statistic("running_var", running_var)
    if found.rows.constant or found.layout.size == 0:  # no new statistics
        new = old
    else:
        keep = rows.ONE - weight
        new = keep * old[0] + weight * found.rows.mean, keep * old[1] + weight * found.rows.variance
    mean, variance = (found.layout.to_parameter_shape(one).to_dd() for one in new)
    return found.y(), mean, variance


@np.errstate(all="ignore")
def batch_norm_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, running_mean: ArrayLike, running_var: ArrayLike,
    g: ArrayLike, *, eps: float, momentum: float, training: bool, channel_axis: int,
) -> tuple[DD, DD | None, DD | None]:  # fmt: skip
    """Return (dx, dgamma, dbeta), the gradients of sum(y g), g of x's shape.

    dx = r P(gamma g), dgamma = sum g xhat, dbeta = sum g over the channel, with r and P as in `rows`;
    in inference P is the identity. dgamma is None where gamma is, dbeta where beta is.
    """
    nonnegative("momentum", momentum, most=1.0)
    return _normalised(x, gamma, beta, running_mean, running_var, eps, training, channel_axis).vjp(g)


@np.errstate(all="ignore")
def batch_norm_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, running_mean: ArrayLike, running_var: ArrayLike,
    tx: ArrayLike, tgamma: ArrayLike | None, tbeta: ArrayLike | None, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> DD:  # fmt: skip
    """Return ty = gamma r P tx + tgamma xhat + tbeta, of x's shape; tgamma or tbeta None is zero."""
    nonnegative("momentum", momentum, most=1.0)
    found = _normalised(x, gamma, beta, running_mean, running_var, eps, training, channel_axis)
    return found.jvp(tx, tgamma, tbeta)


@np.errstate(all="ignore")
def batch_norm_vjp_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, running_mean: ArrayLike, running_var: ArrayLike,
    g: ArrayLike, a: ArrayLike, b: ArrayLike | None, c: ArrayLike | None, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> tuple[DD, DD | None, DD]:  # fmt: skip
    """Return (x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c).

    a has x's shape, b and c gamma's; b or c None is zero. gamma_bar is None where gamma is. The
    formulas stand at `rows.vjp_vjp`.
    """
    nonnegative("momentum", momentum, most=1.0)
    found = _normalised(x, gamma, beta, running_mean, running_var, eps, training, channel_axis)
    return found.vjp_vjp(g, a, b, c)


@np.errstate(all="ignore")
def batch_norm_jvp_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, running_mean: ArrayLike, running_var: ArrayLike,
    tx: ArrayLike, tgamma: ArrayLike | None, tbeta: ArrayLike | None,
    sx: ArrayLike, sgamma: ArrayLike | None, sbeta: ArrayLike | None, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> DD:  # fmt: skip
    """Return the derivative of ty in the direction (sx, sgamma, sbeta), of x's shape; None is zero."""
    nonnegative("momentum", momentum, most=1.0)
    found = _normalised(x, gamma, beta, running_mean, running_var, eps, training, channel_axis)
    return found.jvp_jvp(tx, tgamma, sx, sgamma, tbeta=tbeta, sbeta=sbeta)


batch_norm = rounded(batch_norm_exact)
batch_norm_vjp = rounded(batch_norm_vjp_exact)
batch_norm_jvp = rounded(batch_norm_jvp_exact)
batch_norm_vjp_vjp = rounded(batch_norm_vjp_vjp_exact)
batch_norm_jvp_jvp = rounded(batch_norm_jvp_jvp_exact)


def _normalised(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, running_mean: ArrayLike, running_var: ArrayLike,
    eps: float, training: bool, channel_axis: int,
) -> Normalisation:  # fmt: skip
    x = checked_floats("x", x)
    found = Normalisation(Layout.channels(x.shape, channel_from_front(x, channel_axis)), x, gamma, beta)
    mean, variance = found.statistic("running_mean", running_mean), found.statistic("running_var", running_var)
    eps = nonnegative("eps", eps)
    return found.centred(eps) if training else found.by(mean, variance, eps)
