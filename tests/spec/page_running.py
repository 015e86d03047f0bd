"""
The running analysis of the accuracy page: numbers whose M, E and K follow from A20 to A22 as printed.

An expression of the page, evaluated with such numbers for its names, is computed step by step with the bounds of each
step, as the code does on its tape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from mpmath import mpf

from .page_bounds import Stated, carried_out
from .page_values import array


@attrs.frozen(eq=False)
class Running(Stated):
    """An exact value with its magnitude, its error and its product bound, in an arithmetic of u and eta."""

    __array_ufunc__ = None

    z: Any
    M: Any
    E: Any
    K: Any
    #: u, eta, and what else the formulas name of the arithmetic.
    units: Mapping[str, Any]
    #: "flushed", where the arithmetic is.
    labels: frozenset[str] = frozenset()

    @classmethod
    def of(cls, number: Any, units: Mapping[str, Any], labels: frozenset[str] = frozenset()) -> Running:
        """The code's bounds of a number, taken as given."""
        held = (number.as_float64, number.magnitude, number.error, number.product_bound)
        return cls(*(array(one) for one in held), units, labels)

    def step(self, number: str, label: str, z: Any, **values: Any) -> Running:
        """The result of a step that the page has under a number and a label."""
        labels = {*label.split(", "), *self.labels}
        found = carried_out(number, labels, {**self.units, **values})
        return attrs.evolve(self, z=z, M=found["M"], E=found["E"], K=found["K"])

    def bounds(self, name: str) -> dict[str, Any]:
        """M, E and K, as E_q of q and E_t1 of t_1."""
        return {f"{bound}_{name.replace('_', '')}": getattr(self, bound) for bound in "MEK"}

    def off_by(self, error: Any) -> Running:
        """The same number with another E."""
        return attrs.evolve(self, E=error)

    def beside(self, other: Running) -> dict[str, Any]:
        """The bounds of the operands a and b."""
        return {**self.bounds("a"), **other.bounds("b"), "a": self.z, "b": other.z}

    def __add__(self, other: Running) -> Running:
        return self.step("A20", "a + b or a - b", self.z + other.z, **self.beside(other))

    def __sub__(self, other: Running) -> Running:
        return self.step("A20", "a + b or a - b", self.z - other.z, **self.beside(other))

    def __radd__(self, other: int) -> Running:
        given = {name: mpf(one) for name, one in carried_out("A19", {"given"}, {"z": mpf(other)}).items()}
        return attrs.evolve(self, **given) + self

    def __neg__(self) -> Running:
        return attrs.evolve(self, z=-self.z)

    def __mul__(self, other: Running) -> Running:
        return self.step("A21", "a b", self.z * other.z, **self.beside(other))

    def __pow__(self, power: int) -> Running:
        assert power == 2
        return self * self

    def __truediv__(self, n: int) -> Running:
        return self.step("A22", "a / n", self.z / n, **self.bounds("a"), n=n)

    def __abs__(self) -> Any:
        return abs(self.z)

    def total(self) -> Running:
        """The sum over the last axis."""
        z = np.sum(self.z, axis=-1, keepdims=True)
        return self.step("A22", "sum of n terms", z, **self.bounds("t"), n=np.shape(self.z)[-1])

    def mean(self) -> Running:
        """The mean over the last axis."""
        return self.total() / np.shape(self.z)[-1]

    def tensors(self, other: Running) -> Running:
        """The sum of two tensors, formed."""
        z = self.z + other.z
        values = {**self.units, **self.beside(other), "z": z, "M": mpf(0), "K": mpf(0)}
        found = carried_out("A20", {"of two tensors", *self.labels}, values)
        found = carried_out("A19", {"formed"}, found)
        return attrs.evolve(self, z=z, M=found["M"], E=found["E"], K=found["K"])


def over_group(name: str) -> Any:
    """`sum` or `mean`, of numbers of either kind."""
    from .page_values import FUNCTIONS

    method = {"sum": Running.total, "mean": Running.mean}[name]
    return lambda z: method(z) if isinstance(z, Running) else FUNCTIONS[name](z)


#: The functions in the formulas, for numbers of either kind.
CALLED = {name: over_group(name) for name in ("sum", "mean")}
