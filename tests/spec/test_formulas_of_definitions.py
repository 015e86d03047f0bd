"""
The formulas that define the operators and their derivatives, read from the pages and evaluated in mpmath.

Three things are compared: a page's definition, the derivatives that it states, and the reference's results. A formula
that is changed only on a page, or only in the reference, fails here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

from normspec.spec.operators import OPERATORS

from .page_notation import evaluate
from .page_scenes import Scene, scenes
from .page_values import precise, value
from .page_worlds import gradient, rules

#: Two values of a page: differences of differences in 120 digits leave 10^-40 and what cancels in these small calls.
EXACT = mpf(10) ** -30
#: Double-doubles: 2^-102 for each operation, and 22 bits for the losses of a few dozen operations on these calls.
REFERENCE = mpf(2) ** -80

pytestmark = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def _precise():
    with precise():
        yield


@cache
def scene(name: str) -> Scene:
    """A scene, drawn in full precision."""
    with precise():
        return scenes()[name]


with precise():
    NAMES = tuple(scenes())
BY_SCENE = pytest.mark.parametrize("name", NAMES)


def agree(found: Any, expected: Any, within: Any) -> None:
    """Equal element by element, relative to the largest of them, or to 1."""
    found, expected = (np.atleast_1d(np.asarray(value(z), dtype=object)) for z in (found, expected))
    size = max([mpf(1), *np.abs(expected).reshape(-1)])
    difference = np.abs(found - expected).reshape(-1)
    assert max(difference, default=0) <= within * size


@BY_SCENE
def test_the_reference_returns_what_the_page_states(name: str):
    """Values, gradients, tangents and second order of the page are those of the reference."""
    world, told = scene(name).world, scene(name).reference()
    for symbol, expected in told.items():
        agree(world[symbol], expected, REFERENCE)


@BY_SCENE
def test_the_gradients_are_the_derivatives_of_the_definition(name: str):
    """Each gradient that a page states is that of <y, g>, y as the page defines it."""
    one = scene(name)
    for of, symbol in one.first.items():
        found = gradient(lambda z, of=of: one.pulled(one.world.moved(**{of: z})), one.world[of])
        agree(one.world[symbol], found, EXACT)


@BY_SCENE
def test_the_second_order_is_the_derivative_of_the_gradients(name: str):
    """Each gradient of second order is that of the sum of the gradients' products with their cotangents."""
    one = scene(name)
    for of, symbol in one.second.items():
        found = gradient(lambda z, of=of: one.paired(one.world.moved(**{of: z})), one.world[of])
        agree(one.world[symbol], found, EXACT)


@BY_SCENE
def test_the_tangent_is_the_derivative_along_the_tangents(name: str):
    """ty is the derivative of y along the tangents of all inputs and leaves."""
    one = scene(name)
    agree(one.world["ty"], one.tangent("y"), EXACT)


PAGES = ("notation", *OPERATORS)


@pytest.mark.parametrize("page", PAGES)
def test_every_statement_holds_somewhere(page: str):
    """All sides of every statement of a page's definition and derivatives are equal in each scene that it is about."""
    about = [scene(name) for name in NAMES if scene(name).page == page or page == "notation"]
    for statements in rules(page).values():
        for statement in statements:
            held = [one for one in about if one.world.holds(statement)]
            assert held, f"no scene evaluates {statement}"
            for one in held if page != "notation" else held[:1]:
                for side in statement.sides[1:]:
                    sides_agree(one, statement.sides[0], side)


def sides_agree(one: Scene, name: str, side: str) -> None:
    """A name has the value of an expression; what names a map or a family is evaluated where it is used."""
    if not name.endswith((" z", "(z)", "_k", "_z")):
        agree(one.world[name], evaluate(side, one.world), EXACT)
