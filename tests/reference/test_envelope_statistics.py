"""The envelopes of mean and variance (A2 to A6) against sound algorithms in every order and by every merge."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass

from .envelope_data import adversarial, problem
from .envelope_judge import NORMATIVE, Problem, ratio
from .envelope_moments import CENTRED, ONE_PASS, SHIFTED, larger_into_smaller

SIZES = (2, 3, 5, 8, 9, 17, 33, 64, 257)


def largest(rows: Problem, algorithms: dict, accuracy: AccuracyClass = NORMATIVE) -> dict[str, float]:
    """The largest ratio of the mean and of the variance over some algorithms."""
    bounds, exact, found = rows.bounds(accuracy), rows.exact, {"mean": 0.0, "variance": 0.0}
    for algorithm in algorithms.values():
        for name, values in zip(found, algorithm(rows.x), strict=True):
            found[name] = max(found[name], float(ratio(values[:, 0], exact[name], bounds[name]).max()))
    return found


def hard(dtype: type, n: int) -> Problem:
    """Adversarial rows of length n as channels."""
    return problem(adversarial(np.random.default_rng(n), 30 if n < 100 else 6, n, dtype), "batch_norm")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_order_or_merge_leaves_the_envelope(dtype):
    """Sums in any order, Welford's update and merges in any role stay within E_mu and E_v, at every size."""
    found = [largest(hard(dtype, n), CENTRED) for n in SIZES]
    assert max(max(f.values()) for f in found) <= 1
    assert min(f["mean"] for f in found) > 0.05  # and the envelope is not far above all of them


@pytest.mark.parametrize("n", SIZES[1:])
def test_one_hot_in_the_smaller_part(n):
    """A stream merged into a single outlier rounds a correction as large as the outlier, and E_mu allows for it."""
    rng = np.random.default_rng(n)
    x = np.zeros((400, n), np.float32)
    x[:, 0] = 1 + rng.random(400)
    reached = largest(problem(x, "batch_norm"), {"": larger_into_smaller})["mean"]
    assert 0.1 < reached <= 1


def test_streamed_means_of_subnormal_values():
    """Each step of a streamed mean may underflow, and E_mu counts every one of them."""
    x = np.random.default_rng(0).integers(-9, 10, (200, 64)) * np.finfo(np.float32).smallest_subnormal
    assert 0.01 < largest(problem(x.astype(np.float32), "batch_norm", eps=1e-12), CENTRED)["mean"] <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("variance", "algorithms"), [("one-pass", ONE_PASS), ("shifted", SHIFTED)])
def test_weaker_variances_in_their_own_class(dtype, variance, algorithms):
    """One-pass and shifted variances stay within the envelope of the class that they are declared in."""
    accuracy = AccuracyClass(variance=variance)
    found = [largest(hard(dtype, n), algorithms, accuracy) for n in (2, 3, 8, 33)]
    assert max(max(f.values()) for f in found) <= 1
    assert max(f["variance"] for f in found) > 0.05


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_pass_is_far_outside_the_centred_class(dtype):
    """Where the mean is a thousand deviations away, a one-pass variance misses the centred envelope a hundredfold."""
    x = (1000 + np.random.default_rng(1).standard_normal((50, 8))).astype(dtype)
    assert largest(problem(x, "batch_norm"), ONE_PASS)["variance"] > 20


def test_shifted_by_an_outlier_is_outside_the_centred_class():
    """Shifted by the one outlier of a row, the variance cancels, which only the class `shifted` allows."""
    x = np.random.default_rng(2).standard_normal((50, 8)).astype(np.float32)
    x[:, 0] = 1e4
    rows = problem(x, "batch_norm")
    assert largest(rows, SHIFTED, AccuracyClass(variance="shifted"))["variance"] <= 1


def test_one_value_has_an_exact_mean():
    """The mean of one value is that value, and its envelope is 0."""
    rows = problem(np.array([[1.7], [-3.0]], np.float32), "batch_norm")
    assert not rows.bounds()["mean"].any()
    assert largest(rows, CENTRED)["mean"] == 0
