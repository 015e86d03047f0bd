"""Whether gradients follow from a mistake: they are those of the wrong formula, as a framework differentiates it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...spec.layout import Layout
from ..cases.case import Case
from .answers import Answer, Question
from .candidates import Candidate

#: The step of the central difference, in units of the spread of a group: its error is about the square of it.
_STEP = 2.0**-14

#: What roundings of float64 change in <g, y>, in units of the sum of |g y|: some forty at each step of a few.
_ROUNDINGS = 2.0**-53 * 64


def follow(candidate: Candidate, question: Question, gradients: Answer) -> bool:
    """
    Whether each of a target's gradients on a case is the candidate's own, or the derivative of what that computes.

    The derivative along one direction each, by central differences in float64. What is not finite, or not smooth there,
    says nothing.
    """
    case, own = question.case, candidate.answer(question)
    if case.record.composed or gradients.words or own.words:
        return False
    own = candidate.unstable_answer(question)
    for name, value in gradients.values.items():
        given = case.inputs[name[1:]]
        if given is None or not np.isfinite(value.got).all() or (name in own.values and value.agree(own.values[name])):
            continue
        along = _direction(case, name[1:], given)
        near, far = (_derivative(candidate, case, name[1:], along * step) / step for step in (_STEP, 2 * _STEP))
        lost = _ROUNDINGS * _size(candidate, case) / _STEP
        slack = np.where(np.isfinite(value.slack()), value.slack(), np.inf)
        with np.errstate(all="ignore"):
            rounding = float(np.nansum(np.abs(along) * slack))
            apart = abs(float((value.got * along).sum()) - near)
        if np.isfinite(near) and not apart <= rounding + abs(near - far) + lost:
            return False
    return True


def _direction(case: Case, name: str, given: np.ndarray) -> np.ndarray:
    values = given.astype(np.float64)
    random = case.random(f"direction of {name}").random(values.size).reshape(values.shape) + 0.5
    if name != "x" or not values.size:
        return random
    layout = Layout.of(case.operator, values.shape, case.settings)
    spread = np.ptp(layout.rows(values), axis=1, keepdims=True)
    return random * layout.back(np.broadcast_to(spread, (layout.count, layout.size)))


def _derivative(candidate: Candidate, case: Case, name: str, along: np.ndarray) -> float:
    """Half of what <g, y> changes by from one side to the other."""
    with np.errstate(all="ignore"):
        sides = [_product(candidate, case, name, sign * along) for sign in (1.0, -1.0)]
    return (sides[0] - sides[1]) / 2


def _product(candidate: Candidate, case: Case, name: str, moved: np.ndarray) -> float:
    return float(_products(candidate, case, {name: moved}).sum())


def _size(candidate: Candidate, case: Case) -> float:
    with np.errstate(all="ignore"):
        return float(np.abs(_products(candidate, case, {})).sum())


def _products(candidate: Candidate, case: Case, moved: Mapping[str, np.ndarray]) -> np.ndarray:
    """g y, at the inputs of a case and what they are moved by."""
    inputs: Mapping[str, np.ndarray | None] = {
        name: None if value is None else value.astype(np.float64) + moved.get(name, 0.0)
        for name, value in case.inputs.items()
    }
    y = candidate.implementation.call(*inputs.values(), **case.settings)
    return case.g.astype(np.float64) * (y[0] if isinstance(y, tuple) else y)
