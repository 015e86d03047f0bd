"""BatchNorm, exactly: y = gamma (x - mean) / sqrt(var + eps) + beta, channel by channel.

x has any shape with the channels along `channel_axis`, which may be negative; gamma and beta have
shape (channels,) or are None (ones, zeros); running_mean and running_var have shape (channels,).
In training, mean and biased variance are those of x in each channel, and the running statistics move
by `momentum`, the weight of the new value. In inference the running statistics are mean and variance,
constants to every derivative, and are returned as given. Each array may be float16, bfloat16, float32
or float64, is taken exactly as given and is never written to.

The functions named `*_exact` return double-doubles (DD); those without take the same arguments and
return float64 arrays, rounded once from them. Nothing overflows or underflows on the way. A NaN or
infinity in a channel makes its training y NaN and leaves other channels alone; eps = 0 on a channel
without variance is 0/0, NaN. With no values in a channel y is empty, the running statistics are
returned as given and parameter gradients are zero.

All raise ValueError for a dtype, shape, axis, eps (finite, at least 0) or momentum (0 to 1) that does
not fit.

Source: Ioffe, Szegedy, "Batch Normalization" (2015), arXiv:1502.03167, algorithm 1; the running
statistics are an exponential moving average of the mean and the biased variance.
"""

from __future__ import annotations

import numpy as np

from . import rows
from .arguments import channel_from_front, floats, nonnegative
from .double_double import DD
from .layout import Layout
from .rounding import rounded
from .scaled import Scaled


@np.errstate(all="ignore")
def batch_norm_exact(
    x, gamma, beta, running_mean, running_var, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> tuple[DD, DD, DD]:  # fmt: skip
    """Return (y, new_running_mean, new_running_var); y = gamma xhat + beta has x's shape.

    xhat = (x - mean) / sqrt(var + eps); new = (1 - momentum) running + momentum statistic.
    """
    batch = _Batch(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    y = batch.back(rows.affine(batch.normalised, batch.gamma, batch.beta))
    mean, variance = batch.moved_statistics()
    return y, batch.back_parameter(mean), batch.back_parameter(variance)


@np.errstate(all="ignore")
def batch_norm_vjp_exact(
    x, gamma, beta, running_mean, running_var, g, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> tuple[DD, DD | None, DD | None]:  # fmt: skip
    """Return (dx, dgamma, dbeta), the gradients of sum(y g), g of x's shape.

    dx = r P(gamma g), dgamma = sum g xhat, dbeta = sum g over the channel, with r and P as in `rows`;
    in inference P is the identity. dgamma is None where gamma is, dbeta where beta is.
    """
    batch = _Batch(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    dx, dgamma, dbeta = rows.vjp(batch.normalised, batch.gamma, batch.data("g", g), batch.layout.shared)
    return (
        batch.back(dx),
        None if gamma is None else batch.back_parameter(dgamma),
        None if beta is None else batch.back_parameter(dbeta),
    )


@np.errstate(all="ignore")
def batch_norm_jvp_exact(
    x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> DD:  # fmt: skip
    """Return ty = gamma r P tx + tgamma xhat + tbeta, of x's shape; tgamma or tbeta None is zero."""
    batch = _Batch(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    tx = batch.data("tx", tx)
    tgamma, tbeta = batch.parameter("tgamma", tgamma), batch.parameter("tbeta", tbeta)
    return batch.back(rows.jvp(batch.normalised, batch.gamma, tx, tgamma, tbeta))


@np.errstate(all="ignore")
def batch_norm_vjp_vjp_exact(
    x, gamma, beta, running_mean, running_var, g, a, b, c, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> tuple[DD, DD | None, DD]:  # fmt: skip
    """Return (x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c).

    a has x's shape, b and c gamma's; b or c None is zero. gamma_bar is None where gamma is. The
    formulas stand at `rows.vjp_vjp`.
    """
    batch = _Batch(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    g, a = batch.data("g", g), batch.data("a", a)
    b, c = batch.parameter("b", b), batch.parameter("c", c)
    x_bar, gamma_bar, g_bar = rows.vjp_vjp(batch.normalised, batch.gamma, g, a, b, c, batch.layout.shared)
    return (
        batch.back(x_bar),
        None if gamma is None else batch.back_parameter(gamma_bar),
        batch.back(g_bar),
    )


@np.errstate(all="ignore")
def batch_norm_jvp_jvp_exact(
    x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, sx, sgamma, sbeta, *,
    eps: float, momentum: float, training: bool, channel_axis: int,
) -> DD:  # fmt: skip
    """Return the derivative of ty in the direction (sx, sgamma, sbeta), of x's shape; None is zero."""
    del tbeta, sbeta  # y is linear in beta, and in nothing else that beta meets
    batch = _Batch(x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis)
    tx, sx = batch.data("tx", tx), batch.data("sx", sx)
    tgamma, sgamma = batch.parameter("tgamma", tgamma), batch.parameter("sgamma", sgamma)
    return batch.back(rows.jvp_jvp(batch.normalised, batch.gamma, tx, tgamma, sx, sgamma))


batch_norm = rounded(batch_norm_exact)
batch_norm_vjp = rounded(batch_norm_vjp_exact)
batch_norm_jvp = rounded(batch_norm_jvp_exact)
batch_norm_vjp_vjp = rounded(batch_norm_vjp_vjp_exact)
batch_norm_jvp_jvp = rounded(batch_norm_jvp_jvp_exact)


class _Batch:
    """x as a matrix with one channel a row, normalised; what has one value a channel as a column."""

    def __init__(self, x, gamma, beta, running_mean, running_var, eps, momentum, training, channel_axis) -> None:
        x = floats("x", x)
        self.layout = Layout.channels(x.shape, channel_from_front(x, channel_axis))
        self.gamma = rows.ONE if gamma is None else self.column("gamma", gamma)
        self.beta = self.parameter("beta", beta)
        self.mean = self.column("running_mean", running_mean)
        self.variance = self.column("running_var", running_var)
        self.momentum = Scaled.of(nonnegative("momentum", momentum, most=1.0))
        eps = nonnegative("eps", eps)
        if training:
            self.normalised = rows.normalise(self.data("x", x), eps)
        else:
            self.normalised = rows.normalise_by(self.data("x", x), self.mean, self.variance, eps)

    def moved_statistics(self) -> tuple[Scaled, Scaled]:
        """Return the running statistics after this call: as given where there is nothing to learn."""
        if self.normalised.constant or self.layout.size == 0:
            return self.mean, self.variance
        keep = rows.ONE - self.momentum
        return (
            keep * self.mean + self.momentum * self.normalised.mean,
            keep * self.variance + self.momentum * self.normalised.variance,
        )

    def data(self, name: str, value) -> Scaled:
        """Return an array of x's shape as a matrix."""
        return self.layout.rows(Scaled.of(floats(name, value, self.layout.shape)))

    def parameter(self, name: str, value) -> Scaled:
        """Return a column, or zero for None."""
        return rows.ZERO if value is None else self.column(name, value)

    def column(self, name: str, value) -> Scaled:
        """Return an array of shape (channels,) as a column."""
        return self.layout.parameter_rows(Scaled.of(floats(name, value, self.layout.parameter_shape)))

    def back(self, result: Scaled) -> DD:
        return self.layout.back(result).to_dd()

    def back_parameter(self, result: Scaled) -> DD:
        return self.layout.parameter_back(result).to_dd()
