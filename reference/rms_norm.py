"""RMSNorm, exactly: y = gamma x / sqrt(mean(x^2) + eps) over trailing axes.

x has any shape; `axes` are its last axes, negative and in order, (-1,) or (-2, -1); gamma has the
shape of those axes, or is None (ones). No mean is subtracted. Each array may be float16, bfloat16,
float32 or float64, is taken exactly as given and is never written to.

The functions named `*_exact` return double-doubles (DD); those without take the same arguments and
return float64 arrays, rounded once from them. Nothing overflows or underflows on the way. A NaN makes
y NaN in its whole group. An infinity makes its own y NaN and the y of every finite value of its group
zero. Both leave other groups alone. eps = 0 on a group of zeros is 0/0, NaN. With no groups y is
empty and dgamma is zero.

All raise ValueError for an unsuitable dtype, shape, axes or eps (finite, at least 0).

Source: Zhang, Sennrich, "Root Mean Square Layer Normalization" (2019), arXiv:1910.07467, eq. 4.
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
def rms_norm_exact(x: ArrayLike, gamma: ArrayLike | None, *, eps: float, axes: Sequence[int]) -> DD:
    """Return y = gamma xhat, xhat = x / sqrt(mean(x^2) + eps); its shape is x's."""
    return _normalised(x, gamma, eps, axes).y()


@np.errstate(all="ignore")
def rms_norm_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None, g: ArrayLike, *, eps: float, axes: Sequence[int]
) -> tuple[DD, DD | None]:
    """Return (dx, dgamma), the gradients of sum(y g), g of x's shape.

    dx = r P(gamma g) and dgamma = sum over groups of g xhat, with r and P as in `rows`. dgamma is None
    where gamma is.
    """
    return _normalised(x, gamma, eps, axes).vjp(g)[:2]


@np.errstate(all="ignore")
def rms_norm_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None,
    tx: ArrayLike, tgamma: ArrayLike | None, *, eps: float, axes: Sequence[int],
) -> DD:  # fmt: skip
    """Return ty = gamma r P tx + tgamma xhat, of x's shape; tgamma None is zero."""
    return _normalised(x, gamma, eps, axes).jvp(tx, tgamma, None)


@np.errstate(all="ignore")
def rms_norm_vjp_vjp_exact(
    x: ArrayLike, gamma: ArrayLike | None,
    g: ArrayLike, a: ArrayLike, b: ArrayLike | None, *, eps: float, axes: Sequence[int],
) -> tuple[DD, DD | None, DD]:  # fmt: skip
    """Return (x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b).

    a has x's shape, b gamma's; b None is zero. gamma_bar is None where gamma is. The formulas stand
    at `rows.vjp_vjp`.
    """
    return _normalised(x, gamma, eps, axes).vjp_vjp(g, a, b, None)


@np.errstate(all="ignore")
def rms_norm_jvp_jvp_exact(
    x: ArrayLike, gamma: ArrayLike | None,
    tx: ArrayLike, tgamma: ArrayLike | None,
    sx: ArrayLike, sgamma: ArrayLike | None, *, eps: float, axes: Sequence[int],
) -> DD:  # fmt: skip
    """Return the derivative of ty in the direction (sx, sgamma), of x's shape; None is zero."""
    return _normalised(x, gamma, eps, axes).jvp_jvp(tx, tgamma, sx, sgamma)


rms_norm = rounded(rms_norm_exact)
rms_norm_vjp = rounded(rms_norm_vjp_exact)
rms_norm_jvp = rounded(rms_norm_jvp_exact)
rms_norm_vjp_vjp = rounded(rms_norm_vjp_vjp_exact)
rms_norm_jvp_jvp = rounded(rms_norm_jvp_jvp_exact)


def _normalised(x: ArrayLike, gamma: ArrayLike | None, eps: float, axes: Sequence[int]) -> Normalisation:
    x = checked_floats("x", x)
    layout = Layout.trailing(x.shape, len(trailing_shape(x, axes)))
    return Normalisation(layout, x, gamma, None).about_zero(nonnegative("eps", eps))
