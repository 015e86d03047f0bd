"""LayerNorm, exactly: y = gamma (x - mean) / sqrt(var + eps) + beta over trailing axes.

x has any shape; `axes` are its last axes, negative and in order, (-1,) or (-2, -1); gamma and beta
have the shape of those axes, or are None (ones, zeros). The variance is biased. Each array may be
float16, bfloat16, float32 or float64, is taken exactly as given and is never written to.

The functions named `*_exact` return double-doubles (DD); those without take the same arguments and
return float64 arrays, rounded once from them. Nothing overflows or underflows on the way. A NaN or
infinity in a group makes its y NaN and leaves other groups alone; eps = 0 on a group without variance
is 0/0, NaN. With no groups y is empty and parameter gradients are zero.

All raise ValueError for a dtype, shape, axes or eps (finite, at least 0) that does not fit.

Source: Ba, Kiros, Hinton, "Layer Normalization" (2016), arXiv:1607.06450, eq. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import rows
from .arguments import floats, nonnegative, trailing_shape
from .double_double import DD
from .layout import Layout
from .rounding import rounded
from .scaled import Scaled


@np.errstate(all="ignore")
def layer_norm_exact(x, gamma, beta, *, eps: float, axes: Sequence[int]) -> DD:
    """Return y = gamma xhat + beta, xhat = (x - mean(x)) / sqrt(var(x) + eps); its shape is x's."""
    groups = _Groups(x, gamma, beta, axes)
    return groups.back(rows.affine(groups.normalised(eps), groups.gamma, groups.beta))


@np.errstate(all="ignore")
def layer_norm_vjp_exact(x, gamma, beta, g, *, eps: float, axes: Sequence[int]) -> tuple[DD, DD | None, DD | None]:
    """Return (dx, dgamma, dbeta), the gradients of sum(y g), g of x's shape.

    dx = r P(gamma g), dgamma = sum over groups of g xhat, dbeta = sum over groups of g, with r and P
    as in `rows`. dgamma is None where gamma is, dbeta where beta is.
    """
    groups = _Groups(x, gamma, beta, axes)
    dx, dgamma, dbeta = rows.vjp(groups.normalised(eps), groups.gamma, groups.data("g", g), groups.layout.shared)
    return (
        groups.back(dx),
        None if gamma is None else groups.back_parameter(dgamma),
        None if beta is None else groups.back_parameter(dbeta),
    )


@np.errstate(all="ignore")
def layer_norm_jvp_exact(x, gamma, beta, tx, tgamma, tbeta, *, eps: float, axes: Sequence[int]) -> DD:
    """Return ty = gamma r P tx + tgamma xhat + tbeta, of x's shape; tgamma or tbeta None is zero."""
    groups = _Groups(x, gamma, beta, axes)
    tx = groups.data("tx", tx)
    tgamma, tbeta = groups.parameter("tgamma", tgamma), groups.parameter("tbeta", tbeta)
    return groups.back(rows.jvp(groups.normalised(eps), groups.gamma, tx, tgamma, tbeta))


@np.errstate(all="ignore")
def layer_norm_vjp_vjp_exact(
    x, gamma, beta, g, a, b, c, *, eps: float, axes: Sequence[int]
) -> tuple[DD, DD | None, DD]:
    """Return (x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c).

    a has x's shape, b and c gamma's; b or c None is zero. gamma_bar is None where gamma is. The
    formulas stand at `rows.vjp_vjp`.
    """
    groups = _Groups(x, gamma, beta, axes)
    g, a = groups.data("g", g), groups.data("a", a)
    b, c = groups.parameter("b", b), groups.parameter("c", c)
    x_bar, gamma_bar, g_bar = rows.vjp_vjp(groups.normalised(eps), groups.gamma, g, a, b, c, groups.layout.shared)
    return (
        groups.back(x_bar),
        None if gamma is None else groups.back_parameter(gamma_bar),
        groups.back(g_bar),
    )


@np.errstate(all="ignore")
def layer_norm_jvp_jvp_exact(
    x, gamma, beta, tx, tgamma, tbeta, sx, sgamma, sbeta, *, eps: float, axes: Sequence[int]
) -> DD:
    """Return the derivative of ty in the direction (sx, sgamma, sbeta), of x's shape; None is zero."""
    del tbeta, sbeta  # y is linear in beta, and in nothing else that beta meets
    groups = _Groups(x, gamma, beta, axes)
    tx, sx = groups.data("tx", tx), groups.data("sx", sx)
    tgamma, sgamma = groups.parameter("tgamma", tgamma), groups.parameter("sgamma", sgamma)
    return groups.back(rows.jvp_jvp(groups.normalised(eps), groups.gamma, tx, tgamma, sx, sgamma))


layer_norm = rounded(layer_norm_exact)
layer_norm_vjp = rounded(layer_norm_vjp_exact)
layer_norm_jvp = rounded(layer_norm_jvp_exact)
layer_norm_vjp_vjp = rounded(layer_norm_vjp_vjp_exact)
layer_norm_jvp_jvp = rounded(layer_norm_jvp_jvp_exact)


class _Groups:
    """x as a matrix with one group a row; gamma and beta as matrices of one row."""

    def __init__(self, x, gamma, beta, axes: Sequence[int]) -> None:
        x = floats("x", x)
        self.layout = Layout.trailing(x.shape, len(trailing_shape(x, axes)))
        self.x = self.data("x", x)
        self.gamma = rows.ONE if gamma is None else self.parameter("gamma", gamma)
        self.beta = self.parameter("beta", beta)

    def normalised(self, eps: float) -> rows.Rows:
        return rows.normalise(self.x, nonnegative("eps", eps))

    def data(self, name: str, value) -> Scaled:
        """Return an array of x's shape as a matrix."""
        return self.layout.rows(Scaled.of(floats(name, value, self.layout.shape)))

    def parameter(self, name: str, value) -> Scaled:
        """Return an array of gamma's shape as a matrix of one row; None is zero."""
        if value is None:
            return rows.ZERO
        return self.layout.parameter_rows(Scaled.of(floats(name, value, self.layout.parameter_shape)))

    def back(self, result: Scaled) -> DD:
        return self.layout.back(result).to_dd()

    def back_parameter(self, result: Scaled) -> DD:
        return self.layout.parameter_back(result).to_dd()
