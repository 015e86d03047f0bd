"""Whether wrong gradients follow from a mistake in y: they are then the derivatives of the wrong formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.errors import CALL_FAILED
from ...spec.layout import Layout
from ..cases.case import Case
from ..judging.calls import checked_shapes
from .answers import CLEARLY_WRONG, Answer, Values
from .candidates import Candidate
from .question import Question

#: Steps of the central difference, in units of the spread of a group. The error of the difference is about the square
#: of the step; that of roundings is their size divided by the step.
STEPS = {"float64": 2.0**-14, "float32": 2.0**-6}

#: Roundings in <g, y>, in units of the roundoff times the sum of |g y|: some forty in each of a few steps.
ROUNDINGS = 64

#: Computes y from inputs by name and settings, in one dtype.
Forward = Callable[[Mapping[str, "np.ndarray | None"], Mapping[str, Any]], np.ndarray]


def follow(candidate: Candidate, question: Question, gradients: Answer) -> bool:
    """
    Whether each of a target's gradients on a case is the candidate's own, or the derivative of what that computes.

    Each derivative is taken along one direction, by central differences in float64. It proves nothing where it is not
    finite or the function is not smooth. A framework gives no gradient of an input that y does not depend on.
    """
    if candidate.answer(question).words:
        return False
    try:
        return _all_follow(candidate, question, gradients)
    except CALL_FAILED:  # a mistake may refuse inputs that were moved, or wider ones
        return False


def _all_follow(candidate: Candidate, question: Question, gradients: Answer) -> bool:
    case = question.case
    if gradients.words:
        return bool(gradients.missing) and not any(_moves(candidate, case, name) for name in gradients.missing)
    own = candidate.unstable_answer(question)
    for name, value in gradients.values.items():
        given, there = case.inputs[name[1:]], own.values.get(name)
        if given is None or not np.isfinite(value.got).all() or (there is not None and value.agrees(there)):
            continue
        unstable = value if there is None else attrs.evolve(value, unstable=there.unstable)
        difference = _Difference.of(_forward(candidate, case), case, name[1:], unstable)
        if np.isfinite(difference.derivative) and not difference.apart(value.got) <= difference.slack:
            return False
    return True


def is_derivative(forward: Forward, dtype: str, case: Case, name: str, gradient: Values) -> bool | None:
    """
    Whether a wrong gradient is the derivative of the function's own y; None if that cannot be seen.

    The derivative is taken along one direction, by central differences in a dtype. It cannot be seen if their error may
    be as large as the gradient's.
    """
    difference = _Difference.of(forward, case, name[1:], gradient, dtype)
    if not np.isfinite(difference.derivative) or not np.isfinite(gradient.got).all():
        return None
    if difference.apart(gradient.got) > difference.slack:
        return False
    return True if difference.apart(gradient.expected) >= CLEARLY_WRONG * difference.slack else None


@attrs.frozen(eq=False)
class _Difference:
    """The derivative of <g, y> along a direction of one input."""

    along: np.ndarray
    derivative: float
    #: The largest difference to <gradient, direction> if the gradient is right.
    slack: float

    @classmethod
    def of(cls, forward: Forward, case: Case, name: str, gradient: Values, dtype: str = "float64") -> _Difference:
        """Take it by central differences; the slack includes the gradient's own roundings."""
        given, step = case.inputs[name], STEPS[dtype]
        assert given is not None
        along = direction(case, name, given)
        near, far = (_derivative(forward, case, name, along * one, dtype) / one for one in (step, 2 * step))
        size = float(np.abs(_products(forward, case, {}, dtype)).sum())
        lost = ROUNDINGS * FORMATS[dtype].unit_roundoff * size / step
        slack = np.where(np.isfinite(gradient.slack()), gradient.slack(), np.inf)
        rounding = float(np.nansum(np.abs(along) * slack))
        return cls(along, near, rounding + abs(near - far) + lost)

    def apart(self, gradient: np.ndarray) -> float:
        """How far a gradient is from it along that direction."""
        return abs(float((gradient * self.along).sum()) - self.derivative)


def _moves(candidate: Candidate, case: Case, name: str) -> bool:
    """Whether a candidate's y moves with an input."""
    given = case.inputs[name]
    if given is None:
        return False
    along = STEPS["float64"] * direction(case, name, given)
    return bool(_derivative(_forward(candidate, case), case, name, along, "float64"))


def _forward(candidate: Candidate, case: Case) -> Forward:
    def y_of(inputs: Mapping[str, np.ndarray | None], settings: Mapping[str, Any]) -> np.ndarray:
        return checked_shapes(candidate.subject.session.call(inputs, settings, parts=case.parts)[0], case)["y"]

    return y_of


def direction(case: Case, name: str, given: np.ndarray) -> np.ndarray:
    """A direction in which to move an input; that of x is as long as its groups are wide."""
    values = given.astype(np.float64)
    random = case.random(f"direction of {name}").random(values.size).reshape(values.shape) + 0.5
    if name != "x" or not values.size:
        return random
    if not case.record.normalises:
        return random * np.ptp(values)
    layout = Layout.of(case.operator, values.shape, case.settings)
    spread = np.ptp(layout.rows(values), axis=1, keepdims=True)
    return random * layout.back(np.broadcast_to(spread, (layout.count, layout.size)))


def _derivative(forward: Forward, case: Case, name: str, along: np.ndarray, dtype: str) -> float:
    """Half of the change of <g, y> from one side to the other."""
    sides = [float(_products(forward, case, {name: sign * along}, dtype).sum()) for sign in (1.0, -1.0)]
    return (sides[0] - sides[1]) / 2


def _products(forward: Forward, case: Case, moved: Mapping[str, np.ndarray], dtype: str) -> np.ndarray:
    """g y, at the inputs of a case plus their changes."""
    inputs = {
        name: None if value is None else (value.astype(np.float64) + moved.get(name, 0.0)).astype(dtype)
        for name, value in case.inputs.items()
    }
    return case.g.astype(np.float64) * forward(inputs, case.settings)
