"""loss-landscape: the verdict, what turns it, and the curvature that it rests on."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.studies import second_order
from normspec.studies.classification import points
from normspec.studies.loss_landscape import STUDY, Kind, Net, filter_normalised, turns
from normspec.studies.operators import Operators
from normspec.studies.study import Scale, Verdict, run

from .quick import outcome

pytestmark = pytest.mark.exhaustive  # NumPy's results do not depend on the Python version

QUICK, FEW = Scale(quick=True), Scale(seeds=2)


@pytest.fixture(scope="module")
def numpy_operators() -> Operators:
    """The operators of the built-in target."""
    return Operators.of("numpy")


def moved(weights, direction, step):
    """The weights, so far along the direction."""
    return {name: w + step * direction[name] for name, w in weights.items()}


@pytest.mark.parametrize(("skip", "norm"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_product_with_the_hessian_is_the_derivative_of_the_gradient(numpy_operators, skip, norm):
    """Central differences of two steps, extrapolated, agree to within their accuracy."""
    net, data = Net(numpy_operators, Kind(skip, norm, 3)), points(FEW, 16)
    weights = net.drawn(FEW)
    direction = filter_normalised(FEW, weights, 0)
    product = net.curvature(weights, direction, data)

    def difference(step):
        ahead, behind = (net.gradient(moved(weights, direction, s), data)[1] for s in (step, -step))
        return {name: (ahead[name] - behind[name]) / (2 * step) for name in weights}

    # Central differences err by step^2; of two steps that term is taken out, which leaves step^4 and 2^-52 / step.
    wide, narrow = difference(2.0**-9), difference(2.0**-10)
    for name, exact in product.items():
        np.testing.assert_allclose(
            (4 * narrow[name] - wide[name]) / 3, exact, rtol=0, atol=2.0**-22 * np.abs(exact).max()
        )


def test_the_hessian_is_symmetric(numpy_operators):
    """u H v is v H u, to rounding."""
    net, data = Net(numpy_operators, Kind(True, True, 3)), points(FEW, 16)
    weights = net.drawn(FEW)
    u, v = (filter_normalised(FEW, weights, number) for number in (0, 1))
    one, other = (second_order.dot(a, net.curvature(weights, b, data)) for a, b in ((u, v), (v, u)))
    assert one == pytest.approx(other, rel=1e-10)


def test_the_largest_eigenvalue_is_found():
    """For a diagonal matrix with as many entries as Lanczos takes steps it is exact, and so is its vector."""
    diagonal = np.array([[1.0, -7.0, 3.0, 5.0]])
    value, vector = second_order.largest_eigenvalue(lambda v: {"w": diagonal * v["w"]}, {"w": np.ones((1, 4))}, count=4)
    assert value == pytest.approx([5.0], rel=1e-12)
    assert np.abs(vector["w"][0]) == pytest.approx([0, 0, 0, 1], abs=1e-10)


def test_a_valley_turns_once():
    """And a wave of two valleys three times."""
    at = np.linspace(-1, 1, 41)
    assert turns(np.stack([at**2, np.cos(6 * at)])).tolist() == [1, 3]


def test_skip_connections_smooth_a_deep_net():
    """With LayerNorm they take curvature away, already in a net of 8 layers."""
    judgement = outcome(STUDY.name).judgement
    assert judgement.verdict is not Verdict.DOES_NOT_HOLD
    assert "8 layers, LayerNorm: largest eigenvalue" in judgement.conditions or judgement.verdict is Verdict.HOLDS


def test_a_residual_that_is_dropped_turns_the_verdict(planted):
    """Then there is nothing to compare: the net with it is the one without."""
    assert run(STUDY, planted("rs-skip-ignored"), QUICK).judgement.verdict is Verdict.DOES_NOT_HOLD
