"""The composed operators against arbitrary precision: random calls, and extreme gates and logits."""

from __future__ import annotations

import pytest

from .composed_compare import Comparison
from .composed_data import LOGITS, OPERATORS, draw, highway_witness, mhc_witness

pytestmark = pytest.mark.exhaustive

#: Factors of x, H and g that take products to the ends of float64's range and beyond.
SCALES = [(1, 1, 1), (1e-300, 1e300, 1), (1, 1e300, 1e-200), (1e200, 1, 1e100), (1e-310, 1e-320, 1)]


def beyond(figures):
    """The results whose error exceeds an ulp or, where they cancel, the certified bound."""
    return {name: pair for name, pair in figures.items() if not max(pair) <= 1}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("operator", OPERATORS)
def test_random_calls_are_within_an_ulp(operator, seed):
    """y, every gradient, the tangent and the second derivatives are within 1 ulp, or the certified bound."""
    comparison = Comparison(draw(operator, seed))
    assert beyond(comparison.first()) == {}
    assert beyond(comparison.further()) == {}


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("scales", SCALES)
def test_extreme_gates_are_within_an_ulp(scales, carry):
    """Gates from 0 to +-10^4 and +-inf give right results and derivatives, for any size of x, H and g."""
    comparison = Comparison(highway_witness(*scales, carry=carry))
    assert beyond(comparison.first()) == {}
    assert beyond(comparison.further()) == {}


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("name", LOGITS)
def test_extreme_logits_are_within_an_ulp(name, equal):
    """Ties, spreads up to 2 10^4 and a logit of -inf give right results and derivatives."""
    for scale_h, scale_g in ((1.0, 1.0), (1e200, 1e-200), (1e150, 1e150)):
        comparison = Comparison(mhc_witness(LOGITS[name], scale_h=scale_h, scale_g=scale_g, equal=equal))
        assert beyond(comparison.first()) == {}
        assert beyond(comparison.further()) == {}
