"""TensorFlow's own mistakes, pinned in its own terms: once one is fixed, these tests say so."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from normspec import reference
from normspec.adapters.tensorflow import target

from ..runs import run, verdicts

EPS = 0.25


def hessian(function, x: list[float]) -> np.ndarray:
    """The second derivatives of a function of x by two tapes, in float64."""
    point = tf.constant(x, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            value = function(point)
        gradient = inner.gradient(value, point)
    return outer.jacobian(gradient, point).numpy()


def exact_hessian(function, x: list[float]) -> np.ndarray:
    """The same by mpmath, with 50 digits."""
    n = len(x)
    with mpmath.workdps(50):
        orders = [[tuple(int(k == i) + int(k == j) for k in range(n)) for j in range(n)] for i in range(n)]
        return np.array([[float(mpmath.diff(function, tuple(x), order)) for order in row] for row in orders])


def test_the_second_derivative_of_the_variance_is_wrong() -> None:
    """For the values 0 and 1 it is the identity, and should be 1/2 and -1/2: the mean counts as a constant."""

    def variance(*x):
        mean = sum(x) / len(x)
        return sum((value - mean) ** 2 for value in x) / len(x)

    np.testing.assert_allclose(exact_hessian(variance, [0.0, 1.0]), [[0.5, -0.5], [-0.5, 0.5]], atol=1e-15)
    np.testing.assert_array_equal(hessian(lambda x: tf.nn.moments(x, [0])[1], [0.0, 1.0]), [[1.0, 0.0], [0.0, 1.0]])


def test_the_second_derivative_of_a_norm_of_moments_is_wrong() -> None:
    """For a group of 0 and 1 with g = (1, 0), every entry is off by the same number, two thirds of its size."""

    def first(a, b):
        half = (a - b) / 2
        return half / mpmath.sqrt(half * half + mpmath.mpf(EPS))

    def normalised(x):
        mean, variance = tf.nn.moments(x, [0])
        return tf.nn.batch_normalization(x, mean, variance, None, None, EPS)[0]

    def by_hand(x):
        mean = tf.reduce_mean(x)
        return ((x - mean) * tf.math.rsqrt(tf.reduce_mean((x - mean) ** 2) + EPS))[0]

    exact = exact_hessian(first, [0.0, 1.0])
    np.testing.assert_allclose(exact, 0.75 * np.sqrt(0.5) * np.array([[1, -1], [-1, 1]]), atol=1e-14)
    np.testing.assert_allclose(hessian(by_hand, [0.0, 1.0]), exact, atol=1e-14)
    # 2/n^2 times the derivative of y in the variance, sqrt(1/2), from where the mean counts as a constant.
    np.testing.assert_allclose(hessian(normalised, [0.0, 1.0]), exact + 0.5 * np.sqrt(0.5), atol=1e-14)


SECOND_ORDER = {"layer_norm": "LN-G9", "batch_norm": "BN-G10", "pre_norm": "PR-G6", "post_norm": "PO-G6"}


@pytest.mark.parametrize("operator", SECOND_ORDER)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_check_of_second_order_meets_it(operator: str, dtype: str) -> None:
    """The check finds it wherever x is normalised by its moments, and nowhere else."""
    whole, requirement = target(), SECOND_ORDER[operator]
    for binding in (b for b in whole.bindings if b.operator == operator):
        report = run(_alone(whole, binding), dtypes=(dtype,), requirements={requirement})
        (found,) = report.results
        known = {one.requirement: one.reason for one in binding.known_violations}
        if requirement in known:
            assert (found.verdict.value, found.reason) == ("deviates", known[requirement])
            assert found.counterexample is not None
            assert found.counterexample.output == "second-order gradient of x"
        else:
            assert found.verdict.value == ("pass" if dtype == "float32" else "unsupported")


def _alone(whole, binding, **changes):
    return replace(whole, bindings=(replace(binding, **changes),))


@pytest.mark.parametrize("operator", ["layer_norm", "pre_norm", "post_norm"])
def test_a_parameter_of_one_element_is_broadcast(operator: str) -> None:
    """Nothing refuses a gamma of one element, and the binding says so."""
    whole = target()
    (binding,) = (b for b in whole.bindings if b.operator == operator)
    assert verdicts(run(_alone(whole, binding), requirements={"CM-A1"})) == {"CM-A1": "deviates"}
    assert verdicts(run(_alone(whole, binding, known_violations=()), requirements={"CM-A1"})) == {"CM-A1": "advice"}


def test_an_empty_batch_makes_the_running_statistics_nan() -> None:
    """The mean of nothing is NaN, and the fused kernel sets it so; y and the gradients are as they should be."""
    empty = tf.zeros((0, 1, 1, 2))
    mean, variance = tf.nn.moments(empty, [0, 1, 2])
    assert np.isnan([mean, variance]).all()
    _, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        empty, tf.ones(2), tf.zeros(2), tf.ones(2), tf.ones(2), exponential_avg_factor=0.25
    )
    assert np.isnan([mean, variance]).all()
    whole = target()
    for binding in (b for b in whole.bindings if b.operator == "batch_norm"):
        (found,) = run(_alone(whole, binding), requirements={"BN-E2"}).advice()
        assert found.reason == "new_running_mean after a batch without samples"


def test_squares_overflow_in_float32() -> None:
    """For values near 1e30 all of them return zeros or NaN, though the exact result is of order one."""
    rows = np.array([[1e30, -1e30, 1e30, -1e30], [1e30, 2e30, 3e30, -1e30]], np.float32)
    exact = reference.layer_norm(rows.astype(np.float64), None, None, eps=1e-5, axes=(-1,))
    assert np.all((np.abs(exact) > 0.1) & (np.abs(exact) < 2))
    by_layer = tf.nn.batch_normalization(rows, *tf.nn.moments(rows, [-1], keepdims=True), None, None, 1e-5)
    channels = tf.reshape(rows.T, (4, 1, 1, 2))
    by_kernel, _, _ = tf.compat.v1.nn.fused_batch_norm(channels, tf.ones(2), tf.zeros(2), epsilon=1e-5)
    for y in (by_layer, by_kernel):
        assert np.all(np.isnan(y) | (y.numpy() == 0))
