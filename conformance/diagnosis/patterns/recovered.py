"""Backward passes that recover the normalised values from the returned y, as (y - beta) / gamma, to save memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ....reference.formats import format_of
from ....spec.operators import OPERATORS
from .formula_steps import Array, input_gradient
from .observing import ObservedResult, Observer
from .relation import EXTRA_ROUNDINGS, LinearRelation

#: Below this, authors replace gamma by a number of their own, so that nothing is divided by zero: at 1e-5 or 1e-6.
_TINY = 1e-3
#: What is divided in place of a gamma of zero, and the words for it. Without such a number 0 / 0 is NaN.
_AT_ZERO = ((0.0, ", and 0 where gamma is 0"), (np.nan, ""))


def recovered_relations(observer: Observer, operator: str, name: str) -> Iterator[LinearRelation]:
    """dx and dgamma of normalised values that are recovered from y, in which gamma has hidden some."""
    record = OPERATORS[operator]
    if record.composed or name not in ("dx", "dgamma") or "gamma" not in record.arguments:
        return
    recovered = "(y - beta) / gamma" if "beta" in record.arguments else "y / gamma"
    for at_zero, words in _AT_ZERO:
        yield LinearRelation(
            f"what the formula gives with {recovered} in place of xhat{words}",
            partial(_gradient, observer, name, at_zero),
            rounded=partial(_roundings, observer, name),
        )


def _gradient(observer: Observer, name: str, at_zero: float, one: ObservedResult) -> Array | None:
    steps, xhat = one.steps, _recovered(observer, one, at_zero)
    if xhat is None:
        return None
    return steps.total(steps.g * xhat) if name == "dgamma" else input_gradient(steps, steps.rows(steps.gamma), xhat)


def _recovered(observer: Observer, one: ObservedResult, at_zero: float) -> Array | None:
    steps = one.steps
    answer = observer.answer(one.case, derivative=False)
    if steps.given("gamma") is None or answer is None or "y" not in answer.values:
        return steps.xhat
    y = answer.values["y"].got
    return np.where(steps.gamma == 0, at_zero, (y - steps.beta) / steps.gamma) if y.shape == steps.x.shape else None


def _roundings(observer: Observer, name: str, one: ObservedResult) -> Array | None:
    """How far the roundings of what is recovered carry a gradient; where gamma is tiny, whatever it is replaced by."""
    steps, unit = one.steps, one.values.unit
    xhat = _recovered(observer, one, 0.0)
    if xhat is None or steps.given("gamma") is None:
        return None
    size = np.abs(xhat)
    off = EXTRA_ROUNDINGS * unit * size
    stored = format_of(one.case.x.dtype)
    if stored.narrow:  # the y that it is recovered from may have been wider
        off = off + 2 * stored.unit_roundoff * np.abs(steps.normalised) / np.where(
            steps.gamma == 0, np.inf, np.abs(steps.gamma)
        )
    off = np.where((np.abs(steps.gamma) < _TINY) & (steps.gamma != 0), np.maximum(off, size), off)
    if name == "dgamma":
        return steps.total(np.abs(steps.g) * off)
    h, xhat, off = np.abs(steps.rows(steps.gamma * steps.g)), steps.rows(size), steps.rows(off)
    along, lost = ((h * some).mean(axis=1, keepdims=True) for some in (xhat, off))
    return steps.back(steps.r * (off * (along + lost) + xhat * lost))
