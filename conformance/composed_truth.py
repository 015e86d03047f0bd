"""The truth about a case of a composed operator: exact values and envelopes, evaluated together."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..adapters.binding import differentiable, idle
from ..reference.accuracy import AccuracyClass, Arithmetic
from ..reference.composed import Composed, Value
from ..reference.double_double import DD
from ..spec.parts import Part
from .cases.case import Case
from .truth import arithmetic_of, gradient_name


@attrs.define(eq=False)
class ComposedTruth:
    """Exact outputs, gradients and envelopes of one case, under the conventions that change values."""

    case: Case
    #: "exact" or "float32": whether eps is rounded to float32 first.
    eps_dtype: str = "exact"
    #: No composed operator has one; here so that every truth is made alike.
    running_variance: str = "biased"
    _evaluations: dict[Arithmetic, Composed] = attrs.field(factory=dict)
    _outputs: dict[Arithmetic, Value] = attrs.field(factory=dict)
    _gradients: dict[Any, dict[str, Value]] = attrs.field(factory=dict)
    _kept: list[np.ndarray] = attrs.field(factory=list)

    def evaluation(self, arithmetic: Arithmetic | None = None) -> Composed:
        """The operator on this case's values in one arithmetic; for exact values alone, any will do."""
        arithmetic = arithmetic or arithmetic_of(self.case, AccuracyClass())
        if arithmetic not in self._evaluations:
            self._evaluations[arithmetic] = Composed(
                self.case.operator, self.case.inputs, self.settings, self.case.parts, arithmetic
            )
        return self._evaluations[arithmetic]

    @property
    def settings(self) -> dict[str, Any]:
        """The case's settings, eps as the convention holds it."""
        settings = dict(self.case.settings)
        if self.eps_dtype == "float32" and "eps" in settings:
            settings["eps"] = float(np.float32(settings["eps"]))
        return settings

    def outputs(self) -> dict[str, DD]:
        """The exact y."""
        return {"y": self._y(arithmetic_of(self.case, AccuracyClass())).exact}

    def gradients(self, g: np.ndarray | None = None) -> dict[str, DD]:
        """The exact gradients for a cotangent, the case's own by default."""
        found = self._pulled(arithmetic_of(self.case, AccuracyClass()), g)
        return {name: value.exact for name, value in found.items()}

    def bound(
        self, name: str, arithmetic: Arithmetic, g: np.ndarray | None = None, *, range_rule: bool = True
    ) -> np.ndarray:
        """The envelope of y or of a gradient; infinite, and so not judged, where the operator promises nothing."""
        value = self._y(arithmetic) if name == "y" else self._pulled(arithmetic, g)[name]
        return value.error

    def _y(self, arithmetic: Arithmetic) -> Value:
        if arithmetic not in self._outputs:
            with np.errstate(all="ignore"):
                self._outputs[arithmetic] = self.evaluation(arithmetic).y()
        return self._outputs[arithmetic]

    def _pulled(self, arithmetic: Arithmetic, g: np.ndarray | None) -> dict[str, Value]:
        g = self.case.g if g is None else g
        key = (arithmetic, id(g))
        if key not in self._gradients:
            with np.errstate(all="ignore"):
                found = self.evaluation(arithmetic).gradients(g)
            names = differentiable(self.case.operator, self.case.inputs)
            self._gradients[key] = {gradient_name(name): found[name] for name in names}
            if idle(self.case.operator, self.case.parts) == ("gamma", "beta"):
                self._gradients[key] = self._excused(self._gradients[key], arithmetic, g)
            self._kept.append(g)  # an id stands for its array only while the array lives
        return self._gradients[key]

    def _excused(self, gradients: dict[str, Value], arithmetic: Arithmetic, g: np.ndarray) -> dict[str, Value]:
        """
        The gradients of pre_norm beside a sublayer that ignores what it is handed.

        Who differentiates the normalisation all the same multiplies zero by whatever it is there: nothing is promised
        in groups that are out of its range, or out of that of its derivative.
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
