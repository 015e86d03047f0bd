"""The post-norm block, exactly: y = LN(x + sublayer(x)), LN(s) = gamma (s - mean) / sqrt(var + eps) + beta.

LN acts over the last axis, with the biased variance; x has shape (..., n), gamma and beta have shape (n,) or are None
(ones, zeros); sublayer is a callable on arrays of x's shape. Dtypes are float16, bfloat16, float32 or float64; each
array, and the sum too, is taken exactly as it is and never written to: nothing is rounded before the normalisation.
Results are float64, rounded once from double-double. All functions raise ValueError for an unsuitable dtype, shape or
eps (finite, at least 0).

Sources: Vaswani et al., "Attention Is All You Need" (2017), arXiv:1706.03762, section 3.1; Xiong et al., "On Layer
Normalization in the Transformer Architecture" (2020), arXiv:2002.04745, table 1.
"""

from __future__ import annotations

import attrs
import numpy as np

from .accuracy import Arithmetic
from .arguments import checked_array
from .bounded import Number
from .bounded_functions import tensor_sum
from .bounded_norm import layer_norm as layer_norm_of
from .normalisation import Normalisation, of_last_axis
from .pullback import Part, part_result, part_vjp, sum_or_none, to_float64
from .scaled import Scaled


def formula(
    x: Number, gamma: Number | None, beta: Number | None, *, sublayer: Part, eps: float, arithmetic: Arithmetic
) -> Number:
    """y on numbers that carry their error bounds."""
    return layer_norm_of(tensor_sum(x, sublayer(x)), gamma, beta, eps, arithmetic)


@attrs.frozen(eq=False)
class PostNormGradients:
    """The gradients of sum(y g), float64 arrays; each has the shape of its tensor."""

    #: With respect to x; None where the sublayer has no vjp(x, cotangent) of its own.
    dx: np.ndarray | None
    #: With respect to gamma and beta; None where the parameter is None.
    dgamma: np.ndarray | None
    dbeta: np.ndarray | None
    #: With respect to the sublayer's result. The sum x + sublayer(x) has the same gradient.
    sublayer: np.ndarray


@np.errstate(all="ignore")
def post_norm(x, sublayer: Part, gamma, beta, *, eps: float) -> np.ndarray:
    """Return LN(x + sublayer(x))."""
    return _normalised(checked_array("x", x), sublayer, gamma, beta, eps).y().hi


@np.errstate(all="ignore")
def post_norm_vjp(x, sublayer: Part, gamma, beta, g, *, eps: float) -> PostNormGradients:
    """Return the gradients of sum(y g), g of x's shape.

    With d = LN^T g, taken at the sum: the gradient of the sublayer's result is d, and dx = d + sublayer^T d.
    """
    x = checked_array("x", x)
    d, dgamma, dbeta = _normalised(x, sublayer, gamma, beta, eps).vjp_unrounded(g)
    handed = d.to_dd().hi
    return PostNormGradients(
        dx=to_float64(sum_or_none([d, part_vjp("sublayer", sublayer, x, handed)])),
        dgamma=None if dgamma is None else dgamma.hi,
        dbeta=None if dbeta is None else dbeta.hi,
        sublayer=handed,
    )


def _normalised(x: np.ndarray, sublayer: Part, gamma, beta, eps: float) -> Normalisation:
    total = Scaled.of(x) + Scaled.of(part_result("sublayer", sublayer, x, x.shape))
    return of_last_axis(total, gamma, beta, eps)
