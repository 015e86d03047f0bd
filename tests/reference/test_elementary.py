"""exp, the logistic function, tanh and softmax in double-double, against mpmath."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from normspec.reference import elementary
from normspec.reference.scaled import Scaled

#: The module's promise.
PROMISED = mpf(2) ** -96


def arguments() -> np.ndarray:
    """Arguments of every size, both signs, and the places where the algorithm changes."""
    rng = np.random.default_rng(0)
    edges = [0.0, 1e-300, 2.0**-54, 2.0**-55, 2.0**-10, 2.0**-11, 2.0**-9, 0.34657, 30.0, 100.0, 1e4]
    series = np.ldexp(1 - rng.random(60) / 8, -10)  # where its last terms are largest
    positive = np.concatenate([edges, np.abs(rng.standard_normal(60)), 10 ** rng.uniform(-20, 4, 60), series])
    return np.concatenate([positive, -positive])


def worst(got: Scaled, true: Callable, z: np.ndarray) -> mpf:
    """The largest relative error."""
    errors = [mpf(0)]
    words = (got.mantissa.hi, got.mantissa.lo, got.exponent)
    for argument, hi, lo, exponent in zip(z, *words, strict=True):
        exact = true(mpf(float(argument)))
        found = mpmath.ldexp(mpf(float(hi)) + mpf(float(lo)), int(exponent))
        errors.append(abs(found - exact) / abs(exact) if exact else abs(found))
    return max(errors)


def test_logistic_and_its_complement_are_accurate():
    """t and 1 - t keep 2^-96 relative to themselves from -10^4 to 10^4."""
    z = arguments()
    with mpmath.workprec(400):
        gate, carry = elementary.logistic(Scaled.of(z))
        assert worst(gate, lambda x: 1 / (1 + mpmath.exp(-x)), z) < PROMISED
        assert worst(carry, lambda x: 1 / (1 + mpmath.exp(x)), z) < PROMISED


def test_tanh_is_accurate():
    """tanh keeps 2^-96 relative to itself, near zero too."""
    z = arguments()
    with mpmath.workprec(800):
        assert worst(elementary.tanh(Scaled.of(z)), mpmath.tanh, z) < PROMISED


def test_tanh_of_less_than_float64_holds_is_that_number():
    """At 2^-1060 float64 loses most digits, and at 2^-1590 all; tanh(z) differs from z only by z^3 / 3."""
    tiny = Scaled.of(2.0**-530)
    for size in (tiny * tiny, tiny * tiny * tiny):
        z = Scaled.of(np.array([0.1, -0.1])) * size
        found = elementary.tanh(z)
        np.testing.assert_array_equal(found.mantissa, z.mantissa)
        np.testing.assert_array_equal(found.exponent, z.exponent)


@pytest.mark.parametrize("logits", [[0.3], [1.0, 1.0, 1.0], [0.0, 100.0, -50.0], [1e4, -1e4, 9999.5]])
def test_softmax_is_accurate(logits):
    """Each weight is right relative to itself, however small it is."""
    z = np.array(logits)
    with mpmath.workprec(400):
        top = max(logits)
        total = sum(mpmath.exp(mpf(w) - top) for w in logits)
        assert worst(elementary.softmax(z), lambda w: mpmath.exp(w - top) / total, z) < PROMISED


def test_infinities_and_nan_have_their_limits():
    """At infinity the functions take their limits, a weight of logit -inf is zero, and NaN stays NaN."""
    z = Scaled.of(np.array([np.inf, -np.inf, np.nan, -1e300]))
    with np.errstate(all="ignore"):
        gate, carry = (part.to_dd().hi for part in elementary.logistic(z))
        tanh = elementary.tanh(z).to_dd().hi
    np.testing.assert_array_equal(gate, [1, 0, np.nan, 0])
    np.testing.assert_array_equal(carry, [0, 1, np.nan, 1])
    np.testing.assert_array_equal(tanh, [1, -1, np.nan, -1])
    np.testing.assert_array_equal(elementary.softmax(np.array([2.0, -np.inf, 2.0])).to_dd().hi, [0.5, 0, 0.5])
