"""The steps of the formula on one case, in float64: descriptions compare with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import attrs
import numpy as np

from ....adapters.build_parts import build_part
from ....adapters.numpy import BRIDGE
from ....spec.parts import Part
from ...cases.case import Case

Array = np.ndarray


def broadcast(values: Array | float, shape: tuple[int, ...]) -> Array:
    """Values in a shape; if they have it, as they are, which NumPy takes fifty times as long to find."""
    array = np.asarray(values)
    return array if array.shape == shape else np.broadcast_to(array, shape)


@attrs.frozen(eq=False, slots=False)
class FormulaSteps:
    """The steps of the formula on one case. Rows are groups; everything else has x's shape."""

    case: Case
    _columns: dict[Callable[[FormulaSteps], Array], Array] = attrs.field(init=False, factory=dict)

    @classmethod
    def of(cls, case: Case) -> FormulaSteps:
        """The steps on a case, made once."""
        return case.derived("formula steps", cls)

    def given(self, name: str) -> Array | None:
        """An input in float64; None if it is not given."""
        value = self.case.inputs.get(name)
        return None if value is None else value.astype(np.float64)

    def parameter(self, name: str, absent: float, change: Callable[[Array], Array] | None = None) -> Array:
        """A parameter, or a function of it, for each value of x; the number ``absent`` where it is None."""
        value = self.given(name)
        if value is None:
            return np.full(self.x.shape, absent)
        value = value if change is None else change(value)
        return np.broadcast_to(value if self.case.record.composed else self.case.layout.spread(value), self.x.shape)

    @cached_property
    def x(self) -> Array:
        """x in float64."""
        return self.case.x.astype(np.float64)

    @cached_property
    def g(self) -> Array:
        """The cotangent of y in float64."""
        return self.case.g.astype(np.float64)

    @cached_property
    def gamma(self) -> Array:
        """gamma for each value of x; ones if it is None."""
        return self.parameter("gamma", 1.0)

    @cached_property
    def beta(self) -> Array:
        """beta for each value of x; zeros if it is None."""
        return self.parameter("beta", 0.0)

    @property
    def eps(self) -> float:
        """eps; 0 if the operator has none."""
        return float(self.case.settings.get("eps", 0.0))

    @cached_property
    def n(self) -> int:
        """The number of values in a group."""
        return self.case.layout.size

    @cached_property
    def count(self) -> int:
        """The number of groups."""
        return self.case.layout.count

    @property
    def training(self) -> bool:
        """Whether the statistics are those of x itself."""
        return bool(self.case.settings.get("training", True))

    def rows(self, values: Array) -> Array:
        """An array of x's shape, as one row for each group."""
        return self.case.layout.rows(values)

    def back(self, rows: Array) -> Array:
        """Rows, or one number for each row, in x's shape."""
        return self.case.layout.back(broadcast(rows, (self.count, self.n)))

    @cached_property
    def data(self) -> Array:
        """The normalised data, one row for each group: x, or the sum in a block that normalises its sum."""
        if self.case.record.normalises_sum:
            return self.rows(self.x + self.part("sublayer", self.x))
        return self.rows(self.x)

    @cached_property
    def mean(self) -> Array:
        """The mean that is subtracted, as a column."""
        if not self.case.record.centred:
            return np.zeros((self.count, 1))
        if not self.training:
            return np.asarray(self.given("running_mean")).reshape(self.count, 1)
        return self.data.mean(axis=1, keepdims=True)

    @cached_property
    def variance(self) -> Array:
        """The variance that eps is added to, as a column."""
        if not self.training:
            return np.asarray(self.given("running_var")).reshape(self.count, 1)
        return np.square(self.data - self.mean).mean(axis=1, keepdims=True)

    def column(self, statistic: Callable[[FormulaSteps], Array]) -> Array:
        """A statistic of each group, as a column; computed once."""
        if statistic not in self._columns:
            self._columns[statistic] = broadcast(statistic(self), (self.count, 1))
        return self._columns[statistic]

    @cached_property
    def r(self) -> Array:
        """The reciprocal root, as a column."""
        return 1 / np.sqrt(self.variance + self.eps)

    @cached_property
    def xhat(self) -> Array:
        """The normalised values that gamma multiplies."""
        return self.back((self.data - self.mean) * self.r)

    @cached_property
    def normalised(self) -> Array:
        """gamma xhat + beta."""
        return self.gamma * self.xhat + self.beta

    # -- parts of composed operators -------------------------------------------------------------

    def part(self, role: str, handed: Array) -> Array:
        """The result of the part with a role; ``handed`` itself if there is no such part."""
        part = self.case.parts.get(role)
        return _called(part, self.case.inputs, handed) if isinstance(part, Part) else handed

    @cached_property
    def branches(self) -> tuple[Array, ...]:
        """The result of each branch."""
        parts = self.case.parts.get("branches") or ()
        return tuple(_called(part, self.case.inputs, self.x) for part in parts)  # type: ignore[union-attr]

    @cached_property
    def gate(self) -> Array:
        """t of a highway layer."""
        return logistic(self.part("gate", self.x))

    @cached_property
    def carry(self) -> Array:
        """c of a highway layer."""
        if self.case.parts.get("carry") is None:
            return 1 - self.gate
        return logistic(self.part("carry", self.x))

    # -- sums over values that share a parameter -------------------------------------------------

    def total(self, values: Array) -> Array:
        """Summed over all values that share a parameter, in gamma's shape."""
        layout = self.case.layout
        return layout.to_parameter_shape(layout.total(layout.rows(values)))


def input_gradient(steps: FormulaSteps, gain: Array, values: Array | None = None) -> Array:
    """
    dx of a normalisation.

    ``gain``: the gain beside each value, one group a row. ``values``: what stands in the place of the normalised ones.
    """
    h, xhat = gain * steps.rows(steps.g), steps.rows(steps.xhat if values is None else values)
    if not steps.training:
        return steps.back(steps.r * h)
    centre = h.mean(axis=1, keepdims=True) if steps.case.record.centred else 0.0
    return steps.back(steps.r * (h - centre - xhat * (h * xhat).mean(axis=1, keepdims=True)))


#: What the formula of a normalisation gives, by the result's name.
FORMULAS: Mapping[str, Callable[[FormulaSteps], Array]] = {
    "y": lambda steps: steps.normalised,
    "dx": lambda steps: input_gradient(steps, steps.rows(steps.gamma)),
    "dgamma": lambda steps: steps.total(steps.g * steps.xhat),
    "dbeta": lambda steps: steps.total(steps.g),
}


def _called(part: Part, inputs: Mapping[str, Array | None], handed: Array) -> Array:
    tensors = {name: None if value is None else value.astype(np.float64) for name, value in inputs.items()}
    return np.asarray(build_part(part, tensors, BRIDGE, memory={}, notes={})(handed)).astype(np.float64)


def logistic(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return 1 / (1 + np.exp(-z))


def softmax(z: Array, axis: int | None = -1) -> Array:
    """Positive weights that sum to 1 along an axis, proportional to exp(z)."""
    shifted = np.exp(z - z.max(axis=axis, keepdims=True))
    return shifted / shifted.sum(axis=axis, keepdims=True)
