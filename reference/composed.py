"""
The composed operators with everything that a check compares: values, gradients, tangents, second derivatives, bounds.

`Composed` evaluates one call of residual, pre_norm, post_norm, highway or mhc on a tape of numbers that carry error
bounds (`bounded`). The formulas are in the operators' own files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ..spec.itself import FACTOR, inside
from ..spec.operators import OPERATORS
from ..spec.parts import Part
from . import known_parts
from .accuracy import Arithmetic
from .bounded import Number, Rounding, Tape
from .bounded_gradients import gradients
from .double_double import DD
from .envelope_rows import EVALUATION_FACTOR
from .highway import formula as highway
from .mhc import formula as mhc
from .post_norm import formula as post_norm
from .pre_norm import formula as pre_norm
from .residual import formula as residual
from .values import Float64Numbers, ScaledNumbers

Array = NDArray[np.float64]
#: Tensors by name; None for an absent one.
Tensors = Mapping[str, "NDArray[Any] | None"]


@attrs.frozen(eq=False)
class Value:
    """An exact result, and a bound on a sound algorithm's distance from it."""

    #: The exact values.
    exact: DD
    #: The bound, including the rounding to the result's own format; infinite where the element is not judged.
    error: Array


_FORMULAS: dict[str, Callable[..., Number]] = {
    "residual": residual,
    "pre_norm": pre_norm,
    "post_norm": post_norm,
    "highway": highway,
    "mhc": mhc,
}


class Composed:
    """The exact results and bounds of one call of a composed operator on known parts."""

    def __init__(
        self, operator: str, inputs: Tensors, settings: Mapping[str, Any], parts: Mapping[str, Any],
        arithmetic: Arithmetic,
    ) -> None:  # fmt: skip
        """
        Evaluate the call.

        inputs: x, gamma, beta or logits, and the parts' leaves by name, any of them None; settings: eps for the two
        normalising operators; parts: by role, a part, None, or for "branches" several. Raises KeyError for an
        operator that is not known, and `known_parts.NoExactValue` for a part without a value.
        """
        stages = arithmetic.composed
        self._arithmetic = stages
        self._given = {name: np.asarray(value) for name, value in inputs.items() if value is not None}
        narrower = all(value.dtype != np.float64 for value in self._given.values())
        self._tape = Tape(
            Float64Numbers if narrower else ScaledNumbers,
            Rounding(stages.u, stages.eta, stages.largest, stages.flush),
            Rounding(stages.u_data, stages.eta_data, stages.largest_data, stages.flush_data),
        )
        self._handed: dict[str, list[Number]] = {}
        with np.errstate(all="ignore"):
            self._inputs = {name: self._tape.given(value) for name, value in self._given.items()}
            self._record = OPERATORS[operator]
            # The formula names some inputs as arguments; the leaves of parts are the other inputs.
            called = {role: self._called(role, part) for role, part in parts.items()}
            self._y = self._formula(self._inputs, called, settings)

    def _formula(
        self, explicit: Mapping[str, Number], called: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Number:
        """y of x and the parameters by name, the parts as functions on numbers by role, and the settings."""
        record = self._record
        given = [explicit.get(name) for name in record.arguments if name not in record.roles]
        more = {"arithmetic": self._arithmetic} if record.normalises else {}
        named = {name: settings[name] for name in record.settings}
        return (record.formula or _FORMULAS[record.name])(*given, **called, **named, **more)

    def y(self) -> Value:
        """The result, of x's shape."""
        return self._value(self._y, "x", form=self._arithmetic.of_y)

    def handed(self) -> dict[str, list[Value]]:
        """The arguments of each part, by role: "branches.0" and so on for branches; K values for "fuse"."""
        return {role: [self._value(number, "x") for number in numbers] for role, numbers in self._handed.items()}

    def gradients(self, g: NDArray[Any]) -> dict[str, Value]:
        """The gradients of sum(y g) by input name, without masks; g has x's shape and dtype."""
        with np.errstate(all="ignore"):
            found = self._gradients(self._tape.given(g), differentiable=False)
            return {name: self._value(number, name) for name, number in found.items()}

    def jvp(self, tangents: Tensors) -> Value:
        """The tangent of y; an input whose tangent is None or absent does not move."""
        with np.errstate(all="ignore"):
            return self._value(self._moved({"x": self._y}, tangents, differentiable=False)["x"], "x")

    def vjp_vjp(self, g: NDArray[Any], second: Tensors) -> dict[str, Value]:
        """
        The gradients of the sum over inputs of <gradient, second[input]>, by input name, with "g" for g.

        A cotangent that is None or absent is zero. Masks are left out.
        """
        names = self._differentiable()
        with np.errstate(all="ignore"):
            seed = self._tape.given(g)
            inputs = [*(self._inputs[name] for name in names), seed]
            first = self._gradients(seed, differentiable=True)
            found = self._second(first, second, inputs, differentiable=False)
            formats = (*names, "x")
            # Each input is used at least twice, and a framework may round each use's gradient to the input's format.
            values = [self._value(number, like, uses=2) for number, like in zip(found, formats, strict=True)]
        return dict(zip((*names, "g"), values, strict=True))

    def jvp_vjp(self, g: NDArray[Any], tangents: Tensors) -> dict[str, Value]:
        """The tangents of the gradients for fixed g, by input name; an input without a tangent does not move."""
        with np.errstate(all="ignore"):
            first = self._gradients(self._tape.given(g), differentiable=True)
            moved = self._moved(first, tangents, differentiable=False)
            return {name: self._value(number, name, uses=2) for name, number in moved.items()}

    def vjp_jvp(self, tangents: Tensors, g: NDArray[Any]) -> dict[str, Value]:
        """The gradients of sum(ty g) by input name; ty is the tangent of y."""
        names = self._differentiable()
        with np.errstate(all="ignore"):
            tangent = self._moved({"x": self._y}, tangents, differentiable=True)["x"]
            outputs, inputs = [(tangent, self._tape.given(g))], [self._inputs[name] for name in names]
            found = gradients(outputs, inputs, differentiable=False)
            numbers = map(self._or_zero, found, inputs)
            return {name: self._value(number, name, uses=2) for name, number in zip(names, numbers, strict=True)}

    def jvp_jvp(self, tangents: Tensors, again: Tensors) -> Value:
        """The tangent of the tangent of y in another direction."""
        with np.errstate(all="ignore"):
            tangent = self._moved({"x": self._y}, tangents, differentiable=True)
            return self._value(self._moved(tangent, again, differentiable=False)["x"], "x")

    def _moved(self, results: Mapping[str, Number], tangents: Tensors, *, differentiable: bool) -> dict[str, Number]:
        """
        The tangents of results, shaped like the inputs of their names.

        They are the transposed map of reverse mode, as a function of the results' cotangents. That map takes the same
        steps as forward mode. Reverse mode is linear in these cotangents, so any will do, and zeros are used.
        """
        names = list(results)
        seeds = [self._tape.given(np.zeros(results[name].shape)) for name in names]
        inputs = [self._inputs[name] for name in self._differentiable()]
        outputs = [(results[name], seed) for name, seed in zip(names, seeds, strict=True)]
        pulled = gradients(outputs, inputs, differentiable=True)
        back = dict(zip(self._differentiable(), map(self._or_zero, pulled, inputs), strict=True))
        return dict(zip(names, self._second(back, tangents, seeds, differentiable=differentiable), strict=True))

    def _differentiable(self) -> list[str]:
        return [name for name in self._inputs if not name.endswith("mask")]

    def _gradients(self, seed: Number, *, differentiable: bool) -> dict[str, Number]:
        names = self._differentiable()
        inputs = [self._inputs[name] for name in names]
        found = gradients([(self._y, seed)], inputs, differentiable=differentiable)
        return dict(zip(names, map(self._or_zero, found, inputs), strict=True))

    def _second(
        self, first: Mapping[str, Number], cotangents: Tensors, inputs: list[Number], *, differentiable: bool
    ) -> list[Number]:
        given = {name: value for name, value in cotangents.items() if value is not None and name in first}
        outputs = [(first[name], self._tape.given(value)) for name, value in given.items()]
        found = gradients(outputs, inputs, differentiable=differentiable) if outputs else [None] * len(inputs)
        return list(map(self._or_zero, found, inputs))

    def _or_zero(self, found: Number | None, like: Number) -> Number:
        if found is None:
            found = self._tape.given(np.zeros(like.shape))
        return found if found.shape == like.shape else found.expanded(like.shape)

    def _called(self, role: str, part: Any) -> Any:
        """The function on numbers that stands for a part; it records the part's arguments."""
        if part is None:
            return None
        if isinstance(part, (tuple, list)):
            return [self._called(f"{role}.{k}", one) for k, one in enumerate(part)]
        inner = self._itself(part) if part.kind == "itself" else known_parts.part_function(part, self._inputs)

        def call(handed: Any) -> Number:
            several = isinstance(handed, (tuple, list))
            tensors = [number.cast_to_data() for number in (handed if several else [handed])]
            self._handed[role] = tensors
            given: Any = tensors if several else tensors[0]
            return inner(given)

        return call

    def _itself(self, part: Part) -> Callable[[Number], Number]:
        """The function of a part that is the operator itself: what it receives and returns are tensors."""
        within = inside(self._record, part)
        parameters = {name: self._inputs[leaf] for name, leaf in within.parameters.items()}

        def called(one: Part | tuple[Part, ...]) -> Any:
            if isinstance(one, tuple):
                return [called(each) for each in one]
            function = known_parts.part_function(one, self._inputs)
            return lambda handed: function(handed.cast_to_data())

        parts = {role: called(one) for role, one in within.parts.items() if one is not None}

        def call(handed: Number) -> Number:
            tape = self._tape
            before = tape.rounding
            try:
                tape.rounding = tape.data
                x = known_parts.as_data_tensor(handed.times_power_of_two(FACTOR))
                tape.rounding = tape.operator
                y = self._formula({"x": x, **parameters}, parts, within.settings)
                tape.rounding = tape.data
                return known_parts.as_data_tensor(y.cast_to_data())
            finally:
                tape.rounding = before

        return call

    def _value(self, number: Number, like: str, uses: int = 0, form: tuple[float, float] | None = None) -> Value:
        """
        A number as a result in the format of the input `like`.

        `uses` of its terms may each be rounded to that format on their own. `form` gives another unit roundoff and
        underflow error.
        """
        a, near = self._arithmetic, np.abs(number.as_float64)
        same = self._given[like].dtype == self._given["x"].dtype
        u, eta = form or ((a.u_data, a.eta_data) if same else (a.u_parameter, a.eta_parameter))
        error = number.error
        if number.rounding.u < u and not (number.stored and same):
            error = error + u * (near + error) + eta
            if uses:
                error = error + uses * (u * number.magnitude + eta)
                error = np.where(number.magnitude + error < a.largest_data, error, np.inf)
        judged = (number.product_bound < number.rounding.largest / 4) | number.stored
        judged = judged & (error < number.rounding.largest / 4)  # no NaN either (R6)
        error = np.where(judged, error * EVALUATION_FACTOR, np.inf)
        return Value(self._tape.field.pair(number.value), error)
