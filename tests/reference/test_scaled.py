"""Scaled double-doubles neither overflow nor underflow, and are rounded once when they are converted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normspec.reference.scaled import Scaled

LARGEST = np.finfo(np.float64).max
EXTREMES = np.array([5e-324, -5e-324, 3e-310, 2.0**-1022, 1e-300, 1.0, -1.5, 1e300, LARGEST, -LARGEST, 0.0])


def nearest(value: Fraction) -> float:
    """Round a fraction to float64 once, as integer division in Python does; infinite beyond its range."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def test_every_float_comes_back():
    """Any finite value, subnormals included, is taken and returned exactly."""
    result = Scaled.of(EXTREMES).to_dd()
    assert np.array_equal(result.hi, EXTREMES)
    assert not result.lo.any()


@pytest.mark.parametrize("power", [1, 2, 3])
def test_products_beyond_float64_come_back(power):
    """A product far outside float64's range, divided down again, is exact."""
    x = EXTREMES[EXTREMES != 0]
    there = Scaled.of(x)
    for _ in range(power):
        there = there * Scaled.of(2.0**1000) * Scaled.of(x)
    for _ in range(power):
        there = there / Scaled.of(x) / Scaled.of(2.0**1000)
    assert np.array_equal(there.to_dd().hi, x)


def test_products_round_once_even_to_subnormals():
    """x y, with the exact result near or among the subnormals, is the nearest float64."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 2, 20000), np.ldexp(rng.uniform(1, 2, 20000), rng.integers(-1080, -1010, 20000))
    y *= np.where(rng.random(20000) < 0.5, 1, -1)
    result = (Scaled.of(x) * Scaled.of(y)).to_dd().hi
    true = [nearest(Fraction(a) * Fraction(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert result.tolist() == true


@pytest.mark.parametrize("exponent", [-1074, -1050, -1023])
def test_halfway_cases_among_subnormals_are_decided_by_the_low_word(exponent):
    """m + 1/2 units of 2^-1074 goes to the even neighbour, and a little more or less to its own side."""
    units = 2 ** (exponent + 1074)
    for m in (units, units + 1, 2 * units - 1):
        for nudge in (0, 1, -1):
            half = Scaled.of(float(m)) + Scaled.of(0.5) + Scaled.of(nudge * 2.0**-90)
            tiny = half * Scaled.of(2.0**-1074)
            true = nearest((Fraction(2 * m + 1, 2) + Fraction(nudge, 2**90)) / 2**1074)
            assert float(tiny.to_dd().hi) == true


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_overflow_gives_the_infinity_of_the_right_sign():
    """A value at or above the largest float64 plus half an ulp is infinite with low word zero, one below is not."""
    half_ulp = Scaled.of(2.0**969) + Scaled.of(2.0**969)
    inside = (Scaled.of(LARGEST) + half_ulp - Scaled.of(2.0**920)).to_dd()
    assert float(inside.hi) == LARGEST
    for sign in (1.0, -1.0):
        beyond = ((Scaled.of(LARGEST) + half_ulp) * Scaled.of(sign)).to_dd()
        assert (float(beyond.hi), float(beyond.lo)) == (sign * np.inf, 0.0)


def test_sums_of_any_magnitude_are_exact_where_106_bits_suffice():
    """1e300 plus 1e270, and a sum above float64's range, lose nothing."""
    x = Scaled.of(np.array([[1e300, 1e270, -1e300], [1e308, 1e308, -1e308], [5e-324, 5e-324, 0.0]]))
    assert x.sum(1).to_dd().hi.tolist() == [[1e270], [1e308], [1e-323]]


def test_empty_sums_are_zero():
    """A sum along an axis without elements is zero."""
    assert Scaled.of(np.zeros((0, 3))).sum(0).to_dd().hi.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_non_finite_values_behave_as_in_ieee_arithmetic():
    """Infinity and NaN propagate as they would in hi alone, and leave their neighbours unchanged."""
    x = np.array([np.inf, -np.inf, np.nan, 0.0, 1e300, -3.0])
    for y in (2.0, -1e-300, np.inf, np.nan, 0.0):
        a, b = Scaled.of(x), Scaled.of(y)
        assert np.array_equal((a + b).to_dd().hi, x + y, equal_nan=True)
        assert np.array_equal((a * b).to_dd().hi, x * y, equal_nan=True)
        if y not in (-1e-300,):  # a quotient that rounds
            assert np.array_equal((a / b).to_dd().hi, x / y, equal_nan=True)
    assert np.array_equal(Scaled.of(x).sqrt().to_dd().hi, np.sqrt(x), equal_nan=True)
    total = Scaled.of(np.array([[1.0, np.inf], [1.0, 2.0], [np.inf, -np.inf]])).sum(1).to_dd()
    assert np.array_equal(total.hi, [[np.inf], [3.0], [np.nan]], equal_nan=True)
    assert np.array_equal(total.lo, np.zeros((3, 1)))
