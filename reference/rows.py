"""Normalisation of the rows of a matrix: the mathematics that all normalisations share.

A row is one normalised group: a sample's features (LayerNorm, RMSNorm), a channel's values (BatchNorm),
some channels of a sample (GroupNorm) or one of them (InstanceNorm). The layout says how gamma lies beside
the row and which values share one element of gamma. With n the length of a row, mean() along it, and z any
array of x's shape:

    mu = mean(x)   var = mean((x - mu)^2)   r = (var + eps)^(-1/2)   xhat = (x - mu) r
    P z = z - mean(z) - xhat mean(z xhat)        (the derivative of x -> xhat is r P, symmetric)

RMSNorm has mu = 0, so that var is the mean square and P z = z - xhat mean(z xhat). P z = z where mean and
variance are constants (BatchNorm inference).

Sources: Ba, Kiros, Hinton, "Layer Normalization" (2016), arXiv:1607.06450, eq. 3 and 4; Ioffe,
Szegedy, "Batch Normalization" (2015), arXiv:1502.03167, algorithm 1 and the gradients after it; Zhang,
Sennrich, "Root Mean Square Layer Normalization" (2019), arXiv:1910.07467, eq. 4; Wu, He, "Group
Normalization" (2018), arXiv:1803.08494, eq. 7.
The second order follows by differentiating P, with d(r)/dx = -r^2 xhat / n.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec.layout import Layout
from .scaled import Scaled

#: The axis along which a row runs.
ROW_AXIS = 1

#: The values of a gamma, and of anything else, that is None; they broadcast.
ONE, ZERO = Scaled.of(1.0), Scaled.of(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Normalised rows and the statistics they were normalised with."""

    #: mu and var, shape (rows, 1).
    mean: Scaled
    variance: Scaled
    #: r = 1 / sqrt(var + eps), shape (rows, 1).
    scale: Scaled
    #: xhat, shape (rows, n).
    xhat: Scaled
    #: Whether mean and variance are constants, not functions of x.
    constant: bool
    #: Whether the mean is subtracted.
    centred: bool = True


def normalise(x: Scaled, eps: float) -> Rows:
    """Normalise each row by its own mean and biased variance."""
    mean = x.mean(ROW_AXIS)
    deviation = centred(x)
    variance = (deviation * deviation).mean(ROW_AXIS)
    scale = _reciprocal_root(variance, eps)
    return Rows(mean, variance, scale, deviation * scale, constant=False)


def normalise_by_mean_square(x: Scaled, eps: float) -> Rows:
    """Normalise each row by its mean square, about zero."""
    square = (x * x).mean(ROW_AXIS)
    scale = _reciprocal_root(square, eps)
    return Rows(ZERO, square, scale, x * scale, constant=False, centred=False)


def normalise_by(x: Scaled, mean: Scaled, variance: Scaled, eps: float) -> Rows:
    """Normalise each row by a given mean and variance, shape (rows, 1)."""
    scale = _reciprocal_root(variance, eps)
    return Rows(mean, variance, scale, (x - mean) * scale, constant=True)


def affine(rows: Rows, gamma: Scaled, beta: Scaled) -> Scaled:
    """Return y = gamma xhat + beta."""
    return gamma * rows.xhat + beta


def vjp(rows: Rows, gamma: Scaled, g: Scaled, layout: Layout) -> tuple[Scaled, Scaled, Scaled]:
    """Return dx = r P(gamma g), dgamma = sum g xhat, dbeta = sum g."""
    projected, _ = _project(rows, gamma * g)
    return rows.scale * projected, layout.total(g * rows.xhat), layout.total(g)


def jvp(rows: Rows, gamma: Scaled, tx: Scaled, tgamma: Scaled, tbeta: Scaled) -> Scaled:
    """Return ty = gamma r P tx + tgamma xhat + tbeta."""
    projected, _ = _project(rows, tx)
    return gamma * rows.scale * projected + tgamma * rows.xhat + tbeta


def vjp_vjp(
    rows: Rows, gamma: Scaled, g: Scaled, a: Scaled, b: Scaled, c: Scaled, layout: Layout
) -> tuple[Scaled, Scaled, Scaled]:
    """Return (x_bar, gamma_bar, g_bar): the vjp of (x, gamma, g) -> (dx, dgamma, dbeta) at (a, b, c).

    With h = gamma g and m_z = mean(z xhat):

        x_bar = r P(b g) - r^2 [xhat mean(h P a) + m_a P h + m_h P a]
        gamma_bar = sum g r P a         g_bar = gamma r P a + b xhat + c

    Where mean and variance are constants the bracket is zero.
    """
    h = gamma * g
    pa, mean_a = _project(rows, a)
    ph, mean_h = _project(rows, h)
    r = rows.scale
    x_bar = r * _project(rows, b * g)[0]
    if not rows.constant:
        bracket = rows.xhat * (h * pa).mean(ROW_AXIS) + mean_a * ph + mean_h * pa
        x_bar = x_bar - r * r * bracket
    return x_bar, layout.total(g * (r * pa)), gamma * (r * pa) + b * rows.xhat + c


def jvp_jvp(rows: Rows, gamma: Scaled, tx: Scaled, tgamma: Scaled, sx: Scaled, sgamma: Scaled) -> Scaled:
    """
    Return the derivative of the tangent of y in the direction s; no second derivative of y depends on beta.

    With m_z = mean(z xhat):

        y_ts = tgamma r P sx + sgamma r P tx - gamma r^2 [xhat mean(tx P sx) + m_t P sx + m_s P tx]

    Where mean and variance are constants the bracket is zero.
    """
    pt, mean_t = _project(rows, tx)
    ps, mean_s = _project(rows, sx)
    r = rows.scale
    moved = tgamma * (r * ps) + sgamma * (r * pt)
    if rows.constant:
        return moved
    return moved - gamma * (r * r * (rows.xhat * (tx * ps).mean(ROW_AXIS) + mean_t * ps + mean_s * pt))


def _reciprocal_root(variance: Scaled, eps: float) -> Scaled:
    """Return (variance + eps)^(-1/2)."""
    return ONE / (variance + Scaled.of(eps)).sqrt()


def centred(z: Scaled) -> Scaled:
    """Return z - mean(z), with the mean subtracted twice.

    The first difference carries the rounding error of the mean, which is the same all along the row. The
    second removes it, so that a mean far above the deviation costs no accuracy.
    """
    once = z - z.mean(ROW_AXIS)
    return once - once.mean(ROW_AXIS)


def _project(rows: Rows, z: Scaled) -> tuple[Scaled, Scaled]:
    """Return P z and mean(z xhat); the mean is computed from z - mean(z) where xhat sums to zero."""
    if rows.constant:
        return z, ZERO
    rest = centred(z) if rows.centred else z
    moment = (rest * rows.xhat).mean(ROW_AXIS)
    return rest - rows.xhat * moment, moment
