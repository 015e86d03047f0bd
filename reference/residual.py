"""The residual connection, exactly: y = activation(shortcut(x) + branch(x)).

branch, shortcut and activation are callables on arrays of x's shape; shortcut and activation may be None, the identity.
x has any shape and is float16, bfloat16, float32 or float64, and so is a part's result; each is taken exactly as given
and never written to. Results are float64, rounded once from double-double. All functions raise ValueError for an
unsuitable dtype or shape, also of a part's result.

Sources: He, Zhang, Ren, Sun, "Identity Mappings in Deep Residual Networks" (2016), arXiv:1603.05027, eq. 1 to 5: the
gradient g + J^T g, J the branch's Jacobian; for the post-activation form and the projection shortcut, the same authors'
"Deep Residual Learning for Image Recognition" (2015), arXiv:1512.03385, eq. 1 and 2.
"""

from __future__ import annotations

import attrs
import numpy as np

from .arguments import checked_array, checked_floats
from .bounded import Number
from .bounded_functions import tensor_sum
from .pullback import Part, part_result, part_vjp, sum_or_none, to_float64
from .scaled import Scaled


def formula(x: Number, *, branch: Part, shortcut: Part | None = None, activation: Part | None = None) -> Number:
    """y on numbers that carry their error bounds."""
    kept = x if shortcut is None else shortcut(x)
    total = tensor_sum(kept, branch(x))
    return total if activation is None else activation(total)


@attrs.frozen(eq=False)
class ResidualGradients:
    """The gradients of sum(y g), float64 arrays of x's shape."""

    #: With respect to x; None where a part has no vjp(x, cotangent) of its own.
    dx: np.ndarray | None
    #: With respect to each part's result; each part's vjp receives it. branch and shortcut are None where the
    #: activation has no vjp; shortcut and activation are None where there is none.
    branch: np.ndarray | None
    shortcut: np.ndarray | None
    activation: np.ndarray | None


@np.errstate(all="ignore")
def residual(x, branch: Part, *, shortcut: Part | None = None, activation: Part | None = None) -> np.ndarray:
    """Return activation(shortcut(x) + branch(x)); the activation receives the sum rounded to float64."""
    total = _sum(checked_array("x", x), branch, shortcut).to_dd().hi
    return total if activation is None else part_result("activation", activation, total, total.shape)


@np.errstate(all="ignore")
def residual_vjp(
    x, branch: Part, g, *, shortcut: Part | None = None, activation: Part | None = None
) -> ResidualGradients:
    """Return the gradients of sum(y g), g of x's shape.

    d is the cotangent of the sum: the activation's vjp(sum, g), or g itself without an activation. branch and
    shortcut both receive d, and dx = shortcut^T d + branch^T d; without a shortcut the first term is d itself.
    """
    x = checked_array("x", x)
    g = checked_floats("g", g, x.shape)
    d: Scaled | None = Scaled.of(g)
    if activation is not None:
        d = part_vjp("activation", activation, _sum(x, branch, shortcut).to_dd().hi, g)
    handed = to_float64(d)
    dx = None
    if handed is not None:
        kept = d if shortcut is None else part_vjp("shortcut", shortcut, x, handed)
        dx = sum_or_none([kept, part_vjp("branch", branch, x, handed)])
    return ResidualGradients(
        dx=to_float64(dx),
        branch=handed,
        shortcut=None if shortcut is None else handed,
        activation=None if activation is None else g,
    )


def _sum(x: np.ndarray, branch: Part, shortcut: Part | None) -> Scaled:
    """shortcut(x) + branch(x)."""
    kept = x if shortcut is None else part_result("shortcut", shortcut, x, x.shape)
    return Scaled.of(kept) + Scaled.of(part_result("branch", branch, x, x.shape))
