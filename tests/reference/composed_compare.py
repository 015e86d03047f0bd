"""The composed operators' exact values against arbitrary precision: worst errors in ulps, or in the certified bound."""

from __future__ import annotations

from typing import Any

import attrs
import mpmath
import numpy as np

from normspec.reference.accuracy import REFERENCE_ARITHMETIC
from normspec.reference.composed import Value

from .composed_data import Call
from .composed_oracle import BITS, Oracle
from .judge import worst

Figures = dict[str, tuple[float, float]]

#: Double-double throughout, nothing rounded to float64.
CERTIFYING = attrs.evolve(
    REFERENCE_ARITHMETIC, u_data=2.0**-102, eta_data=0.0, u_parameter=2.0**-102, eta_parameter=0.0
)


class Comparison:
    """One call, by the reference and by the oracle."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.certified = call.composed(CERTIFYING)
        self.oracle = Oracle(call.operator, call.inputs, call.settings, call.parts)

    def first(self) -> Figures:
        """y, and every gradient."""
        call = self.call
        figures = {"y": judged(self.certified.y(), self.oracle.y())}
        true = self.oracle.gradients(call.g)
        return figures | {f"d{k}": judged(v, true[k]) for k, v in self.certified.gradients(call.g).items()}

    def further(self) -> Figures:
        """The tangent of y, and the second derivatives."""
        call = self.call
        figures = {"ty": judged(self.certified.jvp(call.second), self.oracle.jvp(call.second))}
        true = self.oracle.vjp_vjp(call.g, call.second)
        second = self.certified.vjp_vjp(call.g, call.second)
        return figures | {f"{k}_bar": judged(v, true[k]) for k, v in second.items()}


def judged(value: Value, true: np.ndarray, got: Any = None) -> tuple[float, float]:
    """The worst error of a value, or of ``got`` if it is given, in ulps and in the value's bound."""
    with mpmath.workprec(BITS):
        bound = np.empty(value.error.shape, dtype=object)
        bound.reshape(-1)[:] = [mpmath.mpf(float(e)) for e in value.error.reshape(-1)]
        return worst(value.exact.hi if got is None else got, true, bound)
