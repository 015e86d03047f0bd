"""Inputs: those that a function rounds or limits before it computes, and an eps of its own in gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ....reference.formats import FORMATS, Format
from ....spec.operators import OPERATORS
from .formula_steps import FORMULAS, Array, FormulaSteps
from .numbers import written
from .observing import ObservedResult
from .pattern import listed
from .relation import LinearRelation

#: The dtypes that an input may be rounded to; then the inputs that may be rounded together.
_NARROW = ("float16", "bfloat16", "float32")
_ROUNDED_TOGETHER = (
    ("x",),
    ("gamma",),
    ("beta",),
    ("gamma", "beta"),
    ("x", "gamma", "beta"),
    ("running_mean", "running_var"),
)
#: What a backward pass may have in the place of the eps given: none, and the defaults of libraries.
_OTHER_EPS = (0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-3)
_ROUNDED_FOR_GRADIENTS = (("g",), ("x", "g"), ("x", "gamma", "g"))


#: Limits on |x|, of code that shall not overflow in float16: its largest number, and round ones.
_LIMITS = (65504.0, 1e6, 1e5, 1e4, 1e3, 100.0, 10.0)


def limited_x(operator: str, name: str) -> Iterator[LinearRelation]:
    """y, or a gradient, computed from an x that is limited in size."""
    if OPERATORS[operator].composed or name not in FORMULAS:
        return
    for limit in _LIMITS:
        words = f"what the formula gives with x limited to between {written(-limit)} and {written(limit)}"
        yield LinearRelation(words, partial(_of_limited, limit, FORMULAS[name]))


def rounded_inputs(operator: str, name: str) -> Iterator[LinearRelation]:
    """y, or a gradient, computed from inputs that are rounded to a narrower dtype."""
    record = OPERATORS[operator]
    formula = FORMULAS.get(name)
    if record.composed or formula is None:
        return
    known = {*record.arguments, "x", "g"}
    for together in (*_ROUNDED_TOGETHER, *(_ROUNDED_FOR_GRADIENTS if name != "y" else ())):
        if known.issuperset(together):
            for dtype in _NARROW:
                words = ["the cotangent" if one == "g" else one for one in together]
                yield LinearRelation(
                    f"what the formula gives with {listed(words)} rounded to {dtype}",
                    partial(_of_rounded, together, FORMATS[dtype], formula),
                )


def other_eps(operator: str, name: str) -> Iterator[LinearRelation]:
    """A gradient computed with an eps of the backward pass's own; of y, spreads.py knows more."""
    record = OPERATORS[operator]
    if not record.composed and name in ("dx", "dgamma"):
        for eps in _OTHER_EPS:
            words = f"what the formula gives with {written(eps)} in place of eps"
            yield LinearRelation(words, partial(_of_eps, eps, FORMULAS[name]))


def _of_eps(eps: float, formula: Callable[[FormulaSteps], Array], one: ObservedResult) -> Array:
    return formula(FormulaSteps(one.case.replace(eps=eps)))


def _of_limited(limit: float, formula: Callable[[FormulaSteps], Array], one: ObservedResult) -> Array:
    return formula(FormulaSteps(one.case.replace(x=one.case.x.clip(-limit, limit).astype(one.case.x.dtype))))


def _of_rounded(
    names: Sequence[str], format: Format, formula: Callable[[FormulaSteps], Array], one: ObservedResult
) -> Array | None:
    given = {name: one.case.g if name == "g" else one.case.inputs[name] for name in names}
    if all(value is None for value in given.values()):
        return one.expected
    if one.case.x.dtype == format.dtype:  # all inputs have it already
        return None
    rounded = {
        name: None if value is None else value.astype(format.dtype).astype(value.dtype) for name, value in given.items()
    }
    return formula(FormulaSteps(one.case.replace(**rounded)))
