"""Nested derivatives of the composed operators by the reference's tape."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.composed_deck import DERIVATIVES, composed_deck
from normspec.conformance.judging.truth import arithmetic_of
from normspec.reference.accuracy import AccuracyClass
from normspec.reference.composed import Composed
from normspec.spec.operators import OPERATORS

CURVED = [
    pytest.param(one, id=f"{operator} {one.recipe}")
    for operator, record in OPERATORS.items()
    if record.composed
    for one in composed_deck(operator)
    if one.requirements >= DERIVATIVES
]


def directions(case: Case, seed: int) -> dict[str, np.ndarray]:
    """Small integers in the shapes of the operator's differentiable inputs."""
    random = np.random.Generator(np.random.Philox(seed))
    given = {name: case.inputs[name] for name in OPERATORS[case.operator].differentiable}
    return {name: random.integers(-3, 5, one.shape).astype(one.dtype) for name, one in given.items() if one is not None}


@pytest.mark.parametrize("description", CURVED)
def test_the_order_of_the_modes_makes_no_difference(description) -> None:
    """Both modes over the other are the vjp of the vjp, and the tangent of the tangent is what that pairs with."""
    case = build(description, "float64")
    call = Composed(case.operator, case.inputs, case.settings, case.parts, arithmetic_of(case, AccuracyClass()))
    t, s = directions(case, 1), directions(case, 2)
    exact = call.vjp_vjp(case.g, t)
    for found in (call.jvp_vjp(case.g, t), call.vjp_jvp(t, case.g)):
        for name in t:
            np.testing.assert_allclose(found[name].exact.hi, exact[name].exact.hi, rtol=1e-13, atol=1e-13)
            # Either is rounded about as often as the other.
            assert np.all(found[name].error <= 4 * exact[name].error)
            assert np.all(exact[name].error <= 4 * found[name].error)
    paired = sum(np.sum(exact[name].exact.hi * s[name]) for name in t)
    assert np.sum(call.jvp_jvp(t, s).exact.hi * case.g) == pytest.approx(paired, rel=1e-12, abs=1e-12)
