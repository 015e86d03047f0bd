"""Double-double arithmetic keeps the error bounds it states."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from normspec.reference import double_double as dd
from normspec.reference.double_double import DD

U2 = Fraction(1, 2**106)
COUNT = 4000


def exactly(x: DD) -> list[Fraction]:
    """Return each hi + lo as a fraction."""
    return [Fraction(h) + Fraction(l) for h, l in zip(x.hi.tolist(), x.lo.tolist(), strict=True)]


def operands(seed: int) -> DD:
    """Draw normalised double-doubles over 120 binades, with full, short and empty low words."""
    rng = np.random.default_rng(seed)
    hi = np.ldexp(rng.uniform(0.5, 1, COUNT) * rng.choice([-1, 1], COUNT), rng.integers(-60, 60, COUNT))
    lo = np.spacing(hi) / 2 * rng.uniform(-1, 1, COUNT) * rng.choice([0, 2.0**-20, 1], COUNT)
    return DD(*dd.fast_two_sum(hi, lo))


def close_operands(x: DD) -> DD:
    """Return numbers that nearly cancel those of x: equal hi, or hi one ulp off, and other low words."""
    other = operands(99).lo
    hi = -x.hi * np.where(np.arange(COUNT) % 2, 1, 1 + 2.0**-52)
    return DD(*dd.fast_two_sum(hi, np.sign(other) * np.abs(x.lo) * 0.75))


def largest_error(result: DD, true: list[Fraction]) -> Fraction:
    """Return the largest relative error in units of 2^-106."""
    return max(abs(r - t) / abs(t) / U2 for r, t in zip(exactly(result), true, strict=True) if t)


def test_two_sum_and_two_prod_are_exact():
    """The sum, or product, of two floats is exactly the two floats returned."""
    x, y = operands(1).hi, operands(2).hi
    pairs = [(Fraction(a), Fraction(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert exactly(DD(*dd.two_sum(x, y))) == [a + b for a, b in pairs]
    assert exactly(DD(*dd.two_prod(x, y))) == [a * b for a, b in pairs]


@pytest.mark.parametrize("other", [operands(4), close_operands(operands(3))], ids=["apart", "cancelling"])
def test_addition_keeps_its_bound(other):
    """A sum is within its bound of the exact one, relative even where the operands nearly cancel."""
    x = operands(3)
    true = [a + b for a, b in zip(exactly(x), exactly(other), strict=True)]
    assert largest_error(dd.add(x, other), true) <= dd.ADD_BOUND


def test_multiplication_and_division_keep_their_bounds():
    """A product and a quotient are within their bounds of the exact ones."""
    x, y = operands(5), operands(6)
    pairs = list(zip(exactly(x), exactly(y), strict=True))
    assert largest_error(dd.mul(x, y), [a * b for a, b in pairs]) <= dd.MUL_BOUND
    assert largest_error(dd.div(x, y), [a / b for a, b in pairs]) <= dd.DIV_BOUND


def test_square_roots_keep_their_bound():
    """A square root is within its bound of the exact one, and that of zero is zero."""
    x = DD(*(np.sign(operands(7).hi) * word for word in operands(7)))
    with mpmath.workprec(300):
        roots = [mpmath.sqrt(mpmath.mpf(v.numerator) / v.denominator) for v in exactly(x)]
        true = [Fraction(int(mpmath.floor(mpmath.ldexp(v, 260))), 2**260) for v in roots]
    assert largest_error(dd.sqrt(x), true) <= dd.SQRT_BOUND
    with np.errstate(all="ignore"):
        assert exactly(dd.sqrt(DD(np.zeros(1), np.zeros(1)))) == [0]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 64, 1000])
def test_tree_sums_keep_their_bound(count):
    """A sum of any length is within its depth times the bound of one addition, relative to sum |x|."""
    x = DD(*(word[:count].copy() for word in operands(8)))
    before = [word.copy() for word in x]
    total = dd.tree_sum(x, 0)
    addends = exactly(x)
    error = abs(Fraction(float(total.hi)) + Fraction(float(total.lo)) - sum(addends))
    depth = max(count - 1, 0).bit_length()
    assert error <= dd.ADD_BOUND * depth * U2 * sum(map(abs, addends))
    assert all(np.array_equal(word, old) for word, old in zip(x, before, strict=True))


def test_tree_sums_run_along_the_axis_asked_for():
    """Small integers add up exactly along either axis."""
    x = np.arange(35.0).reshape(5, 7)
    for axis in (0, 1):
        assert np.array_equal(dd.tree_sum(DD(x, np.zeros_like(x)), axis).hi, x.sum(axis=axis))
