"""The highway layer, exactly: y = H t + x c, H = transform(x), t = sigmoid(gate(x)), c = 1 - t or sigmoid(carry(x)).

transform, gate and carry are callables on arrays of x's shape; gate and carry return logits, any float down to -inf
and up to inf. x has any shape; dtypes are float16, bfloat16, float32 or float64; each array is taken exactly as given
and never written to. Results are float64, rounded once from double-double: t and 1 - t keep their relative accuracy
where one of them is tiny, and exp(-740) 1e300 is right to the last digit. All functions raise ValueError for an
unsuitable dtype or shape, also of a part's result.

Source: Srivastava, Greff, Schmidhuber, "Highway Networks" (2015), arXiv:1505.00387, eq. 2 and 3. Their eq. 5 states the
derivative for t = 0 and t = 1 alone; in between it has the term g (H - x) t (1 - t), which goes back through the gate.
"""

from __future__ import annotations

import attrs
import numpy as np

from .arguments import checked_array, checked_floats
from .bounded import Number
from .bounded_functions import logistic as gates_of
from .elementary import logistic
from .pullback import Part, part_result, part_vjp, sum_or_none, to_float64
from .scaled import Scaled


def formula(x: Number, *, transform: Part, gate: Part, carry: Part | None = None) -> Number:
    """y on numbers that carry their error bounds."""
    x.extra_terms = 1  # the gradient of x + t (H - x) has g and -g t, two terms where y here has one
    h = transform(x)
    t, c = gates_of(gate(x))
    if carry is not None:
        c, _ = gates_of(carry(x))
    return h * t + x * c


@attrs.frozen(eq=False)
class HighwayGradients:
    """The gradients of sum(y g), float64 arrays of x's shape."""

    #: With respect to x, through the skip path and all parts; None where a part has no vjp(x, cotangent) of its own.
    dx: np.ndarray | None
    #: With respect to x through the skip path alone: g c.
    skip: np.ndarray
    #: With respect to H: g t.
    transform: np.ndarray
    #: With respect to the gate's logits: g (H - x) t (1 - t); with a carry gate g H t (1 - t).
    gate: np.ndarray
    #: With respect to the carry gate's logits: g x c (1 - c); None where there is no carry gate.
    carry: np.ndarray | None


@np.errstate(all="ignore")
def highway(x, transform: Part, gate: Part, *, carry: Part | None = None) -> np.ndarray:
    """Return H t + x c."""
    call = _Call(x, transform, gate, carry)
    return (call.h * call.t + call.x * call.c).to_dd().hi


@np.errstate(all="ignore")
def highway_vjp(x, transform: Part, gate: Part, g, *, carry: Part | None = None) -> HighwayGradients:
    """Return the gradients of sum(y g), g of x's shape; the fields of the result give the formulas."""
    call = _Call(x, transform, gate, carry)
    g = Scaled.of(checked_floats("g", g, call.x.shape))
    skip, to_h = g * call.c, g * call.t
    slope = call.t * call.one_less_t
    to_gate = g * call.h * slope if carry is not None else g * (call.h - call.x) * slope
    to_carry = None if carry is None else g * call.x * (call.c * call.one_less_c)
    parts = [("transform", transform, to_h), ("gate", gate, to_gate)]
    parts += [] if to_carry is None else [("carry", carry, to_carry)]
    pulled = (part_vjp(role, part, call.handed, cotangent.to_dd().hi) for role, part, cotangent in parts)
    dx = sum_or_none([skip, *pulled])
    return HighwayGradients(
        dx=to_float64(dx),
        skip=skip.to_dd().hi,
        transform=to_h.to_dd().hi,
        gate=to_gate.to_dd().hi,
        carry=to_float64(to_carry),
    )


class _Call:
    """x, H, t and c of one call, and x as its parts are handed it."""

    def __init__(self, x, transform: Part, gate: Part, carry: Part | None) -> None:
        self.handed = checked_array("x", x)
        self.x = Scaled.of(self.handed)
        self.h = self._returned("transform", transform)
        self.t, self.one_less_t = logistic(self._returned("gate", gate))
        self.c, self.one_less_c = self.one_less_t, self.t
        if carry is not None:
            self.c, self.one_less_c = logistic(self._returned("carry", carry))

    def _returned(self, role: str, part: Part) -> Scaled:
        return Scaled.of(part_result(role, part, self.handed, self.handed.shape))
