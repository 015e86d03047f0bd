"""How small a fault the envelope lets through: upper limits that nobody can widen unnoticed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normspec.conformance.cases.regimes import draw_group
from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of
from normspec.reference.formats import FORMATS

DTYPES = [np.float32, np.float64]


def group(regime: str, index: int, n: int, eps: float, dtype: type) -> np.ndarray:
    """One group of a regime, as a row."""
    form = FORMATS[np.dtype(dtype).name]
    return draw_group(regime, index, n=n, eps=eps, format=form, seed=0)[None, :].astype(dtype)


def judged(x: np.ndarray, eps: float, **classes: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(deviations, variance, envelope of y) of rows without gamma and beta."""
    arithmetic = Arithmetic.of(x.dtype, None, AccuracyClass(**classes))
    envelope = envelope_of("layer_norm", x, None, None, eps=eps, axes=(-1,), arithmetic=arithmetic)
    return envelope.statistics.d, envelope.statistics.v, envelope.y()


def shows(x: np.ndarray, eps: float, faulty) -> float:
    """How far y with another denominator, 1/faulty(v, eps), lies outside the envelope."""
    d, v, bound = judged(x, eps)
    return float((np.abs(d / faulty(v, eps) - d / np.sqrt(v + eps)) / bound).max())


FAULTS = {
    "eps 1 percent large": lambda v, eps: np.sqrt(v + 1.01 * eps),
    "eps missing": lambda v, eps: np.sqrt(v) + 1e-300,
    "eps on the deviation": lambda v, eps: np.sqrt(v) + eps,
    "sqrt(eps) on the deviation": lambda v, eps: np.sqrt(v) + math.sqrt(eps),
    "the larger of v and eps": lambda v, eps: np.sqrt(np.maximum(v, eps)),
    "eps ten times": lambda v, eps: np.sqrt(v + 10 * eps),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 8, 64])
def test_faults_of_eps_show_where_eps_rules(n, dtype, fault):
    """Each misuse of eps is far outside the envelope on a group whose variance is near or below eps."""
    regime = "near_eps" if fault in ("eps missing", "the larger of v and eps") else "below_eps"
    assert shows(group(regime, 0, n, 1e-5, dtype), 1e-5, FAULTS[fault]) > 10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 8, 64])
def test_unbiased_variance_shows(n, dtype):
    """n/(n-1) in the variance shows on the witness [-1, 1] and on random groups up to n = 64."""
    witness = np.resize(np.array([-1.0, 1.0]), n)[None, :].astype(dtype)
    assert shows(witness, 1e-5, lambda v, eps: np.sqrt(v * n / (n - 1) + eps)) > 100


def test_eps_in_float32_shows_in_float64():
    """eps = 1e-5 rounded to float32 on its way to a float64 computation is outside the envelope."""
    x = group("below_eps", 1, 8, 1e-5, np.float64)
    assert shows(x, 1e-5, lambda v, eps: np.sqrt(v + float(np.float32(eps)))) > 1e5


def test_a_root_of_low_precision_shows():
    """A reciprocal root good to 2^-12, and in float64 to 2^-21, is outside the envelope."""
    for dtype, error in ((np.float32, 2.0**-12), (np.float64, 2.0**-21)):
        x = group("normal", 0, 8, 1e-5, dtype)
        assert shows(x, 1e-5, lambda v, eps, error=error: np.sqrt(v + eps) * (1 + error)) > 5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 4, 8, 64, 1024])
def test_resolution_on_plain_groups(n, dtype):
    """On normal groups the smallest visible relative fault of y is at least 16 u, and at most 4 n + 60 units."""
    x = np.random.default_rng(n).standard_normal((50, n)).astype(dtype)
    d, v, bound = judged(x, 1e-5)
    y = np.abs(d / np.sqrt(v + 1e-5))
    visible = np.median((bound / y).min(axis=1)) / FORMATS[np.dtype(dtype).name].unit_roundoff
    assert 16 <= visible <= 4 * n + 60


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [4, 8, 64])
def test_resolution_at_the_denominator_where_eps_rules(n, dtype):
    """Where the variance is far below eps, rho is below 8 u: the root and two roundings are all there is."""
    arithmetic = Arithmetic.of(dtype)
    x = 2.0**-12 * group("integers", 0, n, 1e-5, dtype)
    envelope = envelope_of("layer_norm", x * dtype(2.0**-3), None, None, eps=1.0, axes=(-1,), arithmetic=arithmetic)
    assert envelope.statistics.rho.max() <= 8 * arithmetic.u


@pytest.mark.parametrize("dtype", [np.float16])
def test_resolution_of_narrow_results(dtype):
    """In H0 a fault of 2 u_d shows: the envelope is one rounding of the result, and little more."""
    x = np.random.default_rng(9).standard_normal((50, 8)).astype(dtype)
    d, v, bound = judged(x, 1e-5)
    assert np.median(bound / np.abs(d / np.sqrt(v + 1e-5))) <= 1.2 * 2.0**-11


def test_the_price_of_n_is_linear():
    """From n = 64 to n = 1024 the envelope of y grows by at most 20 times: n - 1, and logarithms."""
    sizes = []
    for n in (64, 1024):
        x = np.random.default_rng(n).standard_normal((20, n)).astype(np.float32)
        sizes.append(np.median(judged(x, 1e-5)[2]))
    assert 4 < sizes[1] / sizes[0] < 20
