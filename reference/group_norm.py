"""GroupNorm, exactly: y = gamma (x - mean) / sqrt(var + eps) + beta over groups of a sample's channels.

x has at least two axes: samples along axis 0, channels along `channel_axis`, which may be negative and is
not axis 0, and any others. The channels of each sample form `groups` groups of consecutive channels, all of
the same size; a group holds its channels at all positions. gamma and beta have shape (channels,) or are
None (ones, zeros). The variance is biased. Each array may be float16, bfloat16, float32 or float64, is
taken exactly as given and is never written to.

The functions named `*_exact` return double-doubles (DD); those without take the same arguments and
return float64 arrays, rounded once from them. Nothing overflows or underflows on the way. A NaN or
infinity in a group makes its y NaN and leaves other groups alone; eps = 0 on a group without variance
is 0/0, NaN. With no samples y is empty and parameter gradients are zero; there is at least one channel.

All raise ValueError for an unsuitable dtype, shape, axis, number of groups or eps (finite, at least 0).

Source: Wu, He, "Group Normalization" (2018), arXiv:1803.08494, eq. 1 to 7.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..spec.layout import Layout
from .arguments import checked_floats, group_count, nonnegative, sample_channels
from .double_double import DD
from .normalisation import Normalisation
from .rounding import rounded


@np.errstate(all="ignore")
def group_norm_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, *, eps: float, groups: int, channel_axis: int
) -> DD:
    """Return y = gamma xhat + beta, xhat = (x - mean(x)) / sqrt(var(x) + eps); its shape is x's."""
    return _normalised(x, gamma, beta, eps, groups, channel_axis).y()


@np.errstate(all="ignore")
def group_norm_vjp_exact(
    x: ArrayLike,
    gamma: ArrayLike | None,
    beta: ArrayLike | None,
    g: ArrayLike,
    *,
    eps: float,
    groups: int,
    channel_axis: int,
) -> tuple[DD, DD | None, DD | None]:
    """Return (dx, dgamma, dbeta), the gradients of sum(y g), g of x's shape.

    dx = r P(gamma g), dgamma = sum of g xhat, dbeta = sum of g, with r and P as in `rows`. The sums run over
    all values of a channel. dgamma is None where gamma is, dbeta where beta is.
    """
    return _normalised(x, gamma, beta, eps, groups, channel_axis).vjp(g)


@np.errstate(all="ignore")
def group_norm_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None,
    tx: ArrayLike, tgamma: ArrayLike | None, tbeta: ArrayLike | None, *, eps: float, groups: int, channel_axis: int,
) -> DD:  # fmt: skip
    """Return ty = gamma r P tx + tgamma xhat + tbeta, of x's shape; tgamma or tbeta None is zero."""
    return _normalised(x, gamma, beta, eps, groups, channel_axis).jvp(tx, tgamma, tbeta)


@np.errstate(all="ignore")
def group_norm_vjp_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None,
    g: ArrayLike, a: ArrayLike, b: ArrayLike | None, c: ArrayLike | None, *, eps: float, groups: int, channel_axis: int,
) -> tuple[DD, DD | None, DD]:  # fmt: skip
    """Return (x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c).

    a has x's shape, b and c gamma's; b or c None is zero. gamma_bar is None where gamma is. The
    formulas stand at `rows.vjp_vjp`.
    """
    return _normalised(x, gamma, beta, eps, groups, channel_axis).vjp_vjp(g, a, b, c)


@np.errstate(all="ignore")
def group_norm_jvp_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None,
    tx: ArrayLike, tgamma: ArrayLike | None, tbeta: ArrayLike | None,
    sx: ArrayLike, sgamma: ArrayLike | None, sbeta: ArrayLike | None, *, eps: float, groups: int, channel_axis: int,
) -> DD:  # fmt: skip
    """Return the derivative of ty in the direction (sx, sgamma, sbeta), of x's shape; None is zero."""
    found = _normalised(x, gamma, beta, eps, groups, channel_axis)
    return found.jvp_jvp(tx, tgamma, sx, sgamma, tbeta=tbeta, sbeta=sbeta)


group_norm = rounded(group_norm_exact)
group_norm_vjp = rounded(group_norm_vjp_exact)
group_norm_jvp = rounded(group_norm_jvp_exact)
group_norm_vjp_vjp = rounded(group_norm_vjp_vjp_exact)
group_norm_jvp_jvp = rounded(group_norm_jvp_jvp_exact)


def _normalised(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, eps: float, groups: int, channel_axis: int
) -> Normalisation:
    x = checked_floats("x", x)
    axis, channels = sample_channels(x, channel_axis)
    layout = Layout.of_samples(x.shape, axis, group_count(groups, channels))
    return Normalisation(layout, x, gamma, beta).centred(nonnegative("eps", eps))
