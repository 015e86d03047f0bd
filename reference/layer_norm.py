"""LayerNorm, exactly: y = gamma (x - mean) / sqrt(var + eps) + beta over trailing axes.

x has any shape; `axes` are its last axes, negative and in order, (-1,) or (-2, -1); gamma and beta
have the shape of those axes, or are None (ones, zeros). The variance is biased. Each array may be
float16, bfloat16, float32 or float64, is taken exactly as given and is never written to.

The functions named `*_exact` return double-doubles (DD); those without take the same arguments and
return float64 arrays, rounded once from them. Nothing overflows or underflows on the way. A NaN or
infinity in a group makes its y NaN and leaves other groups alone; eps = 0 on a group without variance
is 0/0, NaN. With no groups y is empty and parameter gradients are zero.

All raise ValueError for an unsuitable dtype, shape, axes or eps (finite, at least 0).

Source: Ba, Kiros, Hinton, "Layer Normalization" (2016), arXiv:1607.06450, eq. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..spec.layout import Layout
from .arguments import checked_floats, nonnegative, trailing_shape
from .double_double import DD
from .normalisation import Normalisation
from .rounding import rounded


@np.errstate(all="ignore")
def layer_norm_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, *, eps: float, axes: Sequence[int]
) -> DD:
    """Return y = gamma xhat + beta, xhat = (x - mean(x)) / sqrt(var(x) + eps); its shape is x's."""
    return _normalised(x, gamma, beta, eps, axes).y()


@np.errstate(all="ignore")
def layer_norm_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, g: ArrayLike, *, eps: float, axes: Sequence[int]
) -> tuple[DD, DD | None, DD | None]:
    """Return (dx, dgamma, dbeta), the gradients of sum(y g), g of x's shape.

    dx = r P(gamma g), dgamma = sum over groups of g xhat, dbeta = sum over groups of g, with r and P
    as in `rows`. dgamma is None where gamma is, dbeta where beta is.
    """
    return _normalised(x, gamma, beta, eps, axes).vjp(g)


@np.errstate(all="ignore")
def layer_norm_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None,
    tx: ArrayLike, tgamma: ArrayLike | None, tbeta: ArrayLike | None, *, eps: float, axes: Sequence[int],
) -> DD:  # fmt: skip
    """Return ty = gamma r P tx + tgamma xhat + tbeta, of x's shape; tgamma or tbeta None is zero."""
    return _normalised(x, gamma, beta, eps, axes).jvp(tx, tgamma, tbeta)


@np.errstate(all="ignore")
def layer_norm_vjp_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None,
    g: ArrayLike, a: ArrayLike, b: ArrayLike | None, c: ArrayLike | None, *, eps: float, axes: Sequence[int],
) -> tuple[DD, DD | None, DD]:  # fmt: skip
    """Return (x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c).

    a has x's shape, b and c gamma's; b or c None is zero. gamma_bar is None where gamma is. The
    formulas stand at `rows.vjp_vjp`.
    """
    return _normalised(x, gamma, beta, eps, axes).vjp_vjp(g, a, b, c)


@np.errstate(all="ignore")
def layer_norm_jvp_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None,
    tx: ArrayLike, tgamma: ArrayLike | None, tbeta: ArrayLike | None,
    sx: ArrayLike, sgamma: ArrayLike | None, sbeta: ArrayLike | None, *, eps: float, axes: Sequence[int],
) -> DD:  # fmt: skip
    """Return the derivative of ty in the direction (sx, sgamma, sbeta), of x's shape; None is zero."""
    return _normalised(x, gamma, beta, eps, axes).jvp_jvp(tx, tgamma, sx, sgamma, tbeta=tbeta, sbeta=sbeta)


layer_norm = rounded(layer_norm_exact)
layer_norm_vjp = rounded(layer_norm_vjp_exact)
layer_norm_jvp = rounded(layer_norm_jvp_exact)
layer_norm_vjp_vjp = rounded(layer_norm_vjp_vjp_exact)
layer_norm_jvp_jvp = rounded(layer_norm_jvp_jvp_exact)


def _normalised(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, eps: float, axes: Sequence[int]
) -> Normalisation:
    x = checked_floats("x", x)
    layout = Layout.trailing(x.shape, len(trailing_shape(x, axes)))
    return Normalisation(layout, x, gamma, beta).centred(nonnegative("eps", eps))
