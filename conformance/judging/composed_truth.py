"""The truth about a case of a composed operator: exact values and envelopes, evaluated together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import attrs
import numpy as np

from ...adapters.binding import differentiable, idle
from ...reference.accuracy import AccuracyClass, Arithmetic
from ...reference.composed import Composed, Value
from ...reference.double_double import DD
from ...spec.parts import Part
from ..kept.methods import cached_in_memory, cached_on_disk
from .truth import CaseUnderConventions, Directions, arithmetic_of, gradient_name


@attrs.define(eq=False)
class ComposedTruth(CaseUnderConventions):
    """Exact outputs, gradients and envelopes of one case, under the conventions that change values."""

    @property
    def identity(self) -> Hashable:
        return self.case.content, self.eps_dtype

    @cached_in_memory
    def _evaluation(self, arithmetic: Arithmetic) -> Composed:
        """The operator on this case's values in one arithmetic."""
        return Composed(self.case.operator, self.case.inputs, self.settings, self.case.parts, arithmetic)

    @property
    def _some_arithmetic(self) -> Arithmetic:
        """Some arithmetic. Used for exact values, which do not depend on it."""
        return arithmetic_of(self.case, AccuracyClass())

    def outputs(self) -> dict[str, DD]:
        """The exact y."""
        return {"y": self._y(self._some_arithmetic).exact}

    def gradients(self, g: np.ndarray | None = None) -> dict[str, DD]:
        """The exact gradients for a cotangent, by default that of the case."""
        return _exact(self._pulled(self._some_arithmetic, g))

    def bound(
        self, name: str, arithmetic: Arithmetic, g: np.ndarray | None = None, *, range_rule: bool = True
    ) -> np.ndarray:
        """The envelope of y or of a gradient. Where the operator promises nothing it is infinite: not judged."""
        value = self._y(arithmetic) if name == "y" else self._pulled(arithmetic, g)[name]
        return value.error

    @cached_on_disk
    def handed(self, arithmetic: Arithmetic) -> dict[str, list[Value]]:
        """The inputs of each part, by role; see Composed.handed."""
        return self._evaluation(arithmetic).handed()

    def jvp(self, tangents: Directions) -> DD:
        """The exact tangent of y; an input whose tangent is None stays fixed."""
        return self._tangent(self._some_arithmetic, tangents).exact

    def jvp_bound(self, arithmetic: Arithmetic, tangents: Directions) -> np.ndarray:
        """The envelope of that tangent."""
        return self._tangent(arithmetic, tangents).error

    def vjp_vjp(self, g: np.ndarray, second: Directions) -> dict[str, DD]:
        """The exact gradients of the gradients, by input name, and "g" for g; see Composed.vjp_vjp."""
        return _exact(self._second_order(self._some_arithmetic, g, second))

    def vjp_vjp_bounds(self, arithmetic: Arithmetic, g: np.ndarray, second: Directions) -> dict[str, np.ndarray]:
        """The envelopes of these gradients."""
        return _errors(self._second_order(arithmetic, g, second))

    def nested(self, kind: str, tangents: Directions, other: Directions | np.ndarray) -> dict[str, DD]:
        """The exact derivative of a derivative; ``kind`` is from adapters.binding.NESTED."""
        return _exact(self._nested(kind, self._some_arithmetic, tangents, other))

    def nested_bounds(
        self, kind: str, arithmetic: Arithmetic, tangents: Directions, other: Directions | np.ndarray
    ) -> dict[str, np.ndarray]:
        """The envelopes of these derivatives."""
        return _errors(self._nested(kind, arithmetic, tangents, other))

    @cached_on_disk
    def _tangent(self, arithmetic: Arithmetic, tangents: Directions) -> Value:
        return self._evaluation(arithmetic).jvp(tangents)

    @cached_on_disk
    def _second_order(self, arithmetic: Arithmetic, g: np.ndarray, second: Directions) -> dict[str, Value]:
        return self._evaluation(arithmetic).vjp_vjp(g, second)

    @cached_on_disk
    def _nested(
        self, kind: str, arithmetic: Arithmetic, tangents: Directions, other: Directions | np.ndarray
    ) -> dict[str, Value]:
        """By input name, and "g" for g. That of "jvp_jvp" is named "y"."""
        evaluation: Any = self._evaluation(arithmetic)
        if kind == "jvp_vjp":
            return evaluation.jvp_vjp(other, tangents)
        found = getattr(evaluation, kind)(tangents, other)
        return {"y": found} if kind == "jvp_jvp" else found

    @cached_on_disk
    def _y(self, arithmetic: Arithmetic) -> Value:
        with np.errstate(all="ignore"):
            return self._evaluation(arithmetic).y()

    @cached_on_disk
    def _pulled(self, arithmetic: Arithmetic, g: np.ndarray | None) -> dict[str, Value]:
        g = self.case.g if g is None else g
        with np.errstate(all="ignore"):
            found = self._evaluation(arithmetic).gradients(g)
        gradients = {gradient_name(name): found[name] for name in differentiable(self.case.operator, self.case.inputs)}
        idles = idle(self.case.operator, self.case.parts) == ("gamma", "beta")
        return self._excused(gradients, arithmetic, g) if idles else gradients

    def _excused(self, gradients: dict[str, Value], arithmetic: Arithmetic, g: np.ndarray) -> dict[str, Value]:
        """
        The gradients of pre_norm with a sublayer that ignores its input.

        An implementation may still differentiate the normalisation and multiply its derivative by zero. So nothing is
        promised in groups outside the range of the normalisation or of its derivative.
        """
        inputs = {name: self.case.inputs[name] for name in ("x", "gamma", "beta")}
        parts = {"sublayer": Part("identity")}
        reading = Composed(self.case.operator, inputs, self.settings, parts, arithmetic)
        beyond = np.isinf(reading.y().error) | np.isinf(reading.gradients(g)["x"].error)
        masks = {"dx": beyond.any(axis=-1, keepdims=True) | beyond, **dict.fromkeys(("dgamma", "dbeta"), beyond.any())}
        return {
            name: attrs.evolve(value, error=np.where(masks.get(name, False), np.inf, value.error))
            for name, value in gradients.items()
        }


def _exact(values: Mapping[str, Value]) -> dict[str, DD]:
    return {name: value.exact for name, value in values.items()}


def _errors(values: Mapping[str, Value]) -> dict[str, np.ndarray]:
    return {name: value.error for name, value in values.items()}
