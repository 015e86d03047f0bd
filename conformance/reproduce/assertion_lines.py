"""An assertion at the end of a script, and the lines that it is made of."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .spelling import literal


@attrs.frozen
class Assertion:
    """The end of a script."""

    #: The number of the last step that it needs.
    last: int
    #: Lines after that step, each time that it runs.
    lines: tuple[str, ...]
    #: What is wrong, in a few words.
    words: str
    #: Lines before all steps.
    first: tuple[str, ...] = ()
    #: Lines before the call of a step, once its tensors exist; then lines after a step.
    before: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict)
    after: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict)
    #: Whether the last step has to raise.
    raises: bool = False


def is_equal(element: str, expected: str, envelope: float = 0.0) -> tuple[str, str]:
    """Lines that compare an element with an expression: it lies within an envelope, or is the same to the last bit."""
    test = f"abs(got - expected) <= {literal(envelope)}" if envelope else "got == expected"
    message = f"{element} is {{got}}, and must be {{expected}}"
    return f"got, expected = float({element}), {expected}", f"assert {test}, f{message!r}"


def is_there(variable: str) -> str:
    """A line by which a variable must not be None."""
    return f"assert {variable} is not None, '{variable} is None'"


def has_type(variable: str, x: str) -> str:
    """A line by which a variable must be of the type of x."""
    there = f"f'{variable} is of type {{type({variable}).__name__}}, and must be of {{type({x}).__name__}}'"
    return f"assert isinstance({variable}, type({x})), {there}"


def has_dtype(variable: str, x: str) -> str:
    """A line by which a variable must have the dtype of x."""
    there = f"f'{variable} has dtype {{{variable}.dtype}}, and must have {{{x}.dtype}}'"
    return f"assert {variable}.dtype == {x}.dtype, {there}"


def has_shape(variable: str, shape: tuple[int, ...]) -> str:
    """A line by which a variable must have a shape."""
    there = f"f'{variable} has shape {{tuple({variable}.shape)}}, and must have {shape}'"
    return f"assert tuple({variable}.shape) == {literal(shape)}, {there}"
