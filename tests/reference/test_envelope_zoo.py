"""Sound algorithms in every combination stay within the envelope, and come near enough to it."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.batch_norm import batch_norm_exact
from normspec.reference.envelope import envelope_of
from normspec.reference.rms_norm import rms_norm_vjp_exact

from .envelope_data import adversarial, near_underflow, problem, regimes
from .envelope_judge import ratio
from .envelope_moments import CENTRED, ONE_PASS, SHIFTED
from .envelope_zoo import worst

pytestmark = pytest.mark.exhaustive

#: Enough to meet every order and every kind of merge; test_envelope_statistics.py goes through the rest.
SOME = {
    name: CENTRED[name]
    for name in ("two-pass forwards", "two-pass pairs", "1/n pairs", "welford", "tree", "lanes", "blocks")
}


def rows_for(n: int, eps: float, dtype: type, operator: str, seed: int = 0):
    """Adversarial rows and rows of every regime but the subnormal one."""
    hard = adversarial(np.random.default_rng(seed), 4, n, dtype)
    return problem(np.concatenate([hard, regimes(n, eps, dtype, seed, exclude=("subnormal",))]), operator, eps=eps)


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("affine", ["centred", "folded"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zoo_is_within_and_near(dtype, affine, operator):
    """No combination of moments, root, order and form exceeds 1 in any result, and some come above 0.05."""
    found: dict[str, float] = {}
    for n, eps in ((2, 1e-12), (3, 1e-5), (5, 1e-12), (8, 1e-5), (17, 1e-12), (64, 1e-5)):
        rows = rows_for(n, eps, dtype, operator)
        roots = ("1/sqrt", "high", "low") if n < 10 else ("1/sqrt", "sqrt(1/)")
        for result, (reached, label) in worst(rows, SOME, AccuracyClass(affine=affine), roots=roots).items():
            assert reached <= 1, (result, label, n, eps)
            found[result] = max(found.get(result, 0), reached)
    assert found["y"] > 0.05 and found["dx"] > 0.05


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("affine", ["centred", "folded"])
@pytest.mark.parametrize(
    ("dtype", "storage", "widest"), [(np.float16, "native", 12), (np.float32, "H0", 60), (np.float64, "H0", 400)]
)
def test_what_underflows_is_allowed_for(dtype, storage, widest, affine, operator):
    """A product that underflows may be multiplied by whatever factor comes after it, in any order of factors."""
    few = {name: CENTRED[name] for name in ("two-pass pairs", "1/n each", "welford")}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, eps = int(rng.choice([2, 3, 8, 32])), 2.0 ** int(rng.choice([-20, -1, widest // 2, widest]))
        rows = near_underflow(rng, n, dtype, operator, eps)
        found = worst(rows, few, AccuracyClass(affine=affine, storage=storage), sums=("pairs",))
        assert max(reached for reached, _ in found.values()) <= 1, (seed, found)


@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
@pytest.mark.parametrize("deviation", [2.0**-76, 2.0**-69, 1.0])
def test_shares_that_all_round_alike_are_allowed_for(operator, deviation):
    """Where 1/n multiplies each term, n terms may lose half a subnormal number each, all in one direction."""
    rng = np.random.default_rng(1)
    for n in (24, 100, 256):
        x = deviation * rng.choice([-1.0, 1.0], (3, n)) * rng.choice([1.0, 1.3, 1.7], (3, 1))
        rows = problem(x.astype(np.float32), operator, eps=0.0)
        found = worst(attrs.evolve(rows, g=np.full_like(rows.g, 1.3 * 2.0**-143)), {"1/n each": CENTRED["1/n each"]})
        assert max(reached for reached, _ in found.values()) <= 1, (n, found)


def test_what_the_chain_rule_loses_is_allowed_for():
    """In rms_norm the gradient of the mean square underflows, and 2 x multiplies that."""
    one = np.float32(1)
    x, g = np.array([[-(2.0**10), 2.0**11]], np.float32), np.array([[2.0**-112, -(2.0**-111)]], np.float32)
    gamma, settings = np.full(2, 2.0**-15, np.float32), {"eps": 1.0, "axes": (-1,)}
    r, h = one / np.sqrt(np.square(x).mean(1, keepdims=True) + one), gamma * g
    of_square = (h * x).sum(1, keepdims=True) * np.float32(-0.5) * (r * r * r) / np.float32(2)
    dx = h * r + of_square * (np.float32(2) * x)
    exact, _ = rms_norm_vjp_exact(x, gamma, g, **settings)
    envelope = envelope_of("rms_norm", x, gamma, **settings, arithmetic=Arithmetic.of(np.dtype(np.float32)))
    assert 0.1 < ratio(dx, exact, envelope.gradients(g)["dx"]).max() <= 1


def test_parameter_gradients_come_near_on_plain_rows():
    """On standard normal rows dgamma and dbeta reach more than a hundredth of their envelopes."""
    for operator in ("layer_norm", "batch_norm"):
        x = np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32)
        found = worst(problem(x, operator), SOME)
        assert min(found["dgamma"][0], 0.1 * found["dbeta"][0]) > 0.005, found


@pytest.mark.parametrize(("variance", "algorithms"), [("one-pass", ONE_PASS), ("shifted", SHIFTED)])
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_weaker_variances_carry_through(operator, variance, algorithms):
    """y and every gradient built on a one-pass or shifted variance stay within the envelope of that class."""
    for dtype in (np.float32, np.float64):
        for n in (3, 16):
            rows = rows_for(n, 1e-5, dtype, operator)
            found = worst(rows, algorithms, AccuracyClass(variance=variance), sums=("pairs",))
            assert max(reached for reached, _ in found.values()) <= 1, found


def test_one_pass_is_seen_in_the_centred_class():
    """On rows a thousand deviations from 0, y of a one-pass variance misses the centred envelope by far."""
    x = (1000 + np.random.default_rng(0).standard_normal((30, 8))).astype(np.float32)
    assert worst(problem(x, "layer_norm"), ONE_PASS, sums=("pairs",))["y"][0] > 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_folding_is_seen_in_the_centred_class(dtype):
    """In inference x a + b, a mean of 2^14 folded into b, is within the class `folded` and far outside `centred`."""
    x = (2.0**14 + np.random.default_rng(6).standard_normal((4, 8))).astype(dtype)
    gamma, beta, mean, variance = (np.full(4, z, dtype) for z in (1.1, 0.3, 2.0**14, 0.7))
    settings = {"eps": 1e-5, "training": False, "channel_axis": 0}
    exact, *_ = batch_norm_exact(x, gamma, beta, mean, variance, momentum=0.1, **settings)
    a = gamma / np.sqrt(variance + dtype(1e-5))
    y = x * a[:, None] + (beta - mean * a)[:, None]
    reached = {}
    for affine in ("folded", "centred"):
        arithmetic = Arithmetic.of(dtype, None, AccuracyClass(affine=affine))
        envelope = envelope_of("batch_norm", x, gamma, beta, mean, variance, **settings, arithmetic=arithmetic)
        reached[affine] = ratio(y, exact, envelope.y()).max()
    assert 0.05 < reached["folded"] <= 1
    assert reached["centred"] > 50
