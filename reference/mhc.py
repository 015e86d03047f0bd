"""The multi-scale highway connection, exactly: y = x + sum_k w_k H_k, H_k = branches[k](x), w = softmax(logits).

With fuse, a callable on the list of branch results, y = x + fuse([H_1 ... H_K]) and logits is None. branches are
callables on arrays of x's shape. logits has shape (K,), any float but NaN and +inf, not all -inf: a branch whose logit
is -inf has the weight 0. x has any shape; dtypes are float16, bfloat16, float32 or float64; each array is taken exactly
as given and never written to. Results are float64, rounded once from double-double. All functions raise ValueError for
an unsuitable dtype, shape or number of branches, also of a part's result, and unless exactly one of logits and fuse is
given.

Softmax weights over parallel branches of different receptive fields: Li, Wang, Hu, Yang, "Selective Kernel Networks"
(2019), arXiv:1903.06586, where x is not added and the logits depend on it. Not to be confused with manifold-constrained
hyper-connections, arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from .arguments import checked_array, checked_floats
from .bounded import Number
from .bounded_functions import softmax as weights_of
from .bounded_functions import stacked, tensor_sum, weighted_sum
from .elementary import softmax
from .pullback import Part, part_result, part_vjp, refuse_no_callable, sum_or_none, to_float64
from .scaled import Scaled


def formula(x: Number, logits: Number | None, *, branches: Sequence[Part], fuse: Part | None = None) -> Number:
    """y on numbers that carry their error bounds."""
    ys = [branch(x) for branch in branches]
    if fuse is not None:
        return tensor_sum(x, fuse(ys))
    weights = weights_of(_not_none(logits)).reshaped((len(ys), *(1,) * len(x.shape)))
    weighted = weighted_sum(stacked(ys), weights)
    return x.in_sum(len(ys) - 1) + weighted.reshaped(x.shape)  # an algorithm may start the sum with x


@attrs.frozen(eq=False)
class MhcGradients:
    """The gradients of sum(y g), float64 arrays; each has the shape of its tensor."""

    #: With respect to x; None where a part has no vjp(x, cotangent) of its own.
    dx: np.ndarray | None
    #: With respect to the logits: w_k (a_k - sum_j w_j a_j), a_k = <g, H_k>; None with fuse.
    dlogits: np.ndarray | None
    #: With respect to each H_k: w_k g; with fuse, the result of fuse.vjp, None where it has none.
    branches: tuple[np.ndarray, ...] | None
    #: With respect to fuse's result: g; None without fuse.
    fuse: np.ndarray | None


@np.errstate(all="ignore")
def mhc(x, branches: Sequence[Part], logits, *, fuse: Part | None = None) -> np.ndarray:
    """Return x + sum_k w_k H_k, or x + fuse([H_1 ... H_K]); the sum is rounded once."""
    x = checked_array("x", x)
    exact = Scaled.of(x)  # before a branch is handed x, and may write to it
    _, ys = _results(x, branches, logits, fuse)
    if fuse is not None:
        added_to_x = [Scaled.of(part_result("fuse", fuse, ys, x.shape))]
    else:
        added_to_x = [w * Scaled.of(y) for w, y in zip(_weights(logits, len(ys)), ys, strict=True)]
    total = sum_or_none([*added_to_x, exact])
    return _not_none(to_float64(total))


@np.errstate(all="ignore")
def mhc_vjp(x, branches: Sequence[Part], logits, g, *, fuse: Part | None = None) -> MhcGradients:
    """Return the gradients of sum(y g), g of x's shape; the fields of the result give the formulas."""
    x = checked_array("x", x)
    branches, ys = _results(x, branches, logits, fuse)
    g = checked_floats("g", g, x.shape)
    if fuse is not None:
        return _fused(x, branches, ys, fuse, g)
    weights = _weights(logits, len(ys))
    products = [(Scaled.of(g) * Scaled.of(y)).reshape(g.size).sum(0).reshape() for y in ys]
    # As sum_j w_j (a_k - a_j): the weighted mean cancels against a_k where w_k is nearly 1.
    pairs = list(zip(weights, products, strict=True))
    dlogits = [w * _not_none(sum_or_none([v * (a - b) for v, b in pairs])) for w, a in pairs]
    to_branches = [(w * Scaled.of(g)).to_dd().hi for w in weights]
    return MhcGradients(
        dx=_dx(x, branches, to_branches, g),
        dlogits=np.array([float(d.to_dd().hi) for d in dlogits]),
        branches=tuple(to_branches),
        fuse=None,
    )


def _fused(x: np.ndarray, branches: Sequence[Part], ys: list[np.ndarray], fuse: Any, g: np.ndarray) -> MhcGradients:
    """The gradients where fuse replaces the weights."""
    refuse_no_callable("fuse", fuse)
    if not hasattr(fuse, "vjp"):
        return MhcGradients(None, None, None, fuse=g)
    name = "the result of fuse's vjp"
    pulled = _several(name, fuse.vjp(ys, g), "one array for each branch")
    if len(pulled) != len(branches):
        raise ValueError(f"{name} has {len(pulled)} elements: pass one array for each of the {len(branches)} branches")
    to_branches = tuple(checked_floats(name, one, g.shape) for one in pulled)
    return MhcGradients(_dx(x, branches, to_branches, g), None, to_branches, fuse=g)


def _dx(x: np.ndarray, branches: Sequence[Part], to_branches: Sequence[np.ndarray], g: np.ndarray) -> np.ndarray | None:
    """g and what each branch makes of its own cotangent, added up."""
    pairs = enumerate(zip(branches, to_branches, strict=True))
    pulled = (part_vjp(f"branch {k}", branch, x, cotangent) for k, (branch, cotangent) in pairs)
    return to_float64(sum_or_none([Scaled.of(g), *pulled]))


def _results(x: np.ndarray, branches: Any, logits: Any, fuse: Part | None) -> tuple[tuple[Part, ...], list[np.ndarray]]:
    """The branches and their results as float64; ValueError without branches, or unless logits or fuse is given."""
    branches = _several("branches", branches, "a sequence of callables")
    if not branches:
        raise ValueError("branches is empty: pass at least one callable")
    if (logits is None) == (fuse is None):
        raise ValueError("pass logits or fuse, one of the two")
    return branches, [part_result(f"branch {k}", branch, x, x.shape) for k, branch in enumerate(branches)]


def _several(name: str, value: Any, wanted: str) -> tuple[Any, ...]:
    """The elements of a sequence; ValueError for anything that has none."""
    if not isinstance(value, Iterable):
        raise ValueError(f"{name} is {value!r}: pass {wanted}")
    return tuple(value)


def _weights(logits: Any, count: int) -> list[Scaled]:
    """softmax(logits), one number per branch."""
    weights = softmax(checked_floats("logits", logits, (count,)))
    return [weights._moved(lambda z, k=k: z[k]) for k in range(count)]


def _not_none(value: Any) -> Any:
    """The value, which must not be None."""
    assert value is not None
    return value
