"""The pre-norm block, exactly: y = x + sublayer(LN(x)), LN(x) = gamma (x - mean) / sqrt(var + eps) + beta.

LN acts over the last axis, with the biased variance; x has shape (..., n), gamma and beta have shape (n,) or are None
(ones, zeros); sublayer is a callable on arrays of x's shape. Dtypes are float16, bfloat16, float32 or float64; each
array is taken exactly as given and never written to. Results are float64, rounded once from double-double. All
functions raise ValueError for an unsuitable dtype, shape or eps (finite, at least 0).

Source: Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020), arXiv:2002.04745, table 1.
"""

from __future__ import annotations

import attrs
import numpy as np

from .accuracy import Arithmetic
from .arguments import checked_floats
from .bounded import Number
from .bounded_functions import tensor_sum
from .bounded_norm import layer_norm as layer_norm_of
from .normalisation import of_last_axis
from .pullback import Part, part_result, part_vjp, to_float64
from .scaled import Scaled


def formula(
    x: Number, gamma: Number | None, beta: Number | None, *, sublayer: Part, eps: float, arithmetic: Arithmetic
) -> Number:
    """y on numbers that carry their error bounds."""
    x.extra_terms = 2  # the gradient of x has terms through x - mean, the mean, and x a + b
    return tensor_sum(x, sublayer(layer_norm_of(x, gamma, beta, eps, arithmetic)))


@attrs.frozen(eq=False)
class PreNormGradients:
    """The gradients of sum(y g), float64 arrays; each has the shape of its tensor."""

    #: With respect to x, gamma and beta; None where the sublayer has no vjp(x, cotangent) of its own. dgamma and dbeta
    #: are also None where gamma and beta are.
    dx: np.ndarray | None
    dgamma: np.ndarray | None
    dbeta: np.ndarray | None
    #: With respect to the sublayer's result: g.
    sublayer: np.ndarray
    #: With respect to the sublayer's argument LN(x): the sublayer's own vjp.
    normalised: np.ndarray | None


@np.errstate(all="ignore")
def pre_norm(x, sublayer: Part, gamma, beta, *, eps: float) -> np.ndarray:
    """Return x + sublayer(LN(x)); the sublayer receives LN(x) rounded to float64."""
    exact = Scaled.of(checked_floats("x", x))
    handed = of_last_axis(exact, gamma, beta, eps).y().hi
    return (exact + Scaled.of(part_result("sublayer", sublayer, handed, handed.shape))).to_dd().hi


@np.errstate(all="ignore")
def pre_norm_vjp(x, sublayer: Part, gamma, beta, g, *, eps: float) -> PreNormGradients:
    """Return the gradients of sum(y g), g of x's shape.

    With h = sublayer^T g, the cotangent of LN(x): dx = g + LN^T h; dgamma and dbeta are those of LN at h.
    """
    exact = checked_floats("x", x)
    g = checked_floats("g", g, exact.shape)
    norm = of_last_axis(Scaled.of(exact), gamma, beta, eps)
    h = to_float64(part_vjp("sublayer", sublayer, norm.y().hi, g))
    if h is None:
        return PreNormGradients(None, None, None, sublayer=g, normalised=None)
    through_norm, dgamma, dbeta = norm.vjp_unrounded(h)
    return PreNormGradients(
        dx=(Scaled.of(g) + through_norm).to_dd().hi,
        dgamma=None if dgamma is None else dgamma.hi,
        dbeta=None if dbeta is None else dbeta.hi,
        sublayer=g,
        normalised=h,
    )
