"""The envelope of the running statistics (A16) against every sound form of the update."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.batch_norm import batch_norm_exact
from normspec.reference.double_double import DD, add, div, mul
from normspec.reference.envelope import envelope_of

from .envelope_judge import ratio
from .envelope_moments import two_pass, welford
from .envelope_sums import forwards

MOMENTA = (0.0, 1e-3, 0.1, 0.5, 0.9, 0.99, 1.0, 1 - 0.9, 1 - 0.997)
TWO_PASS = two_pass(forwards)


def weighted(old, new, m):
    """(1-m) old + m new, 1-m formed from the rounded m."""
    return (m.dtype.type(1) - m) * old + m * new


def weighted_outside(old, new, m):
    """(1-m) old + m new, 1-m rounded from the exact one."""
    return old.dtype.type(1 - float(m)) * old + m * new


def moved(old, new, m):
    """old + m (new - old)."""
    return old + m * (new - old)


def moved_back(old, new, m):
    """old - (old - new) m, as in TensorFlow, with m given as 1 - (weight of the old)."""
    keep = m.dtype.type(1) - m
    return old - (old - new) * (m.dtype.type(1) - keep)


FORMS = (weighted, weighted_outside, moved, moved_back)


def evaluated(x, old, momentum, form, moments, *, bessel=False):
    """The largest ratio of the running mean and of the running variance for one form of the update."""
    zero = np.zeros(len(x))
    settings = {"eps": 1e-5, "training": True, "channel_axis": 0}
    envelope = envelope_of("batch_norm", x, None, None, old, old, **settings, arithmetic=Arithmetic.of(x.dtype))
    bounds = envelope.running(old, old, momentum, bessel=bessel)
    _, mean, variance = batch_norm_exact(x, None, None, zero, zero, momentum=1.0, **settings)
    n, found = x.shape[1], []
    constant = lambda value: DD(np.full(len(x), value), zero)  # noqa: E731
    if bessel and n > 1:
        variance = mul(variance, div(constant(float(n)), constant(n - 1.0)))
    got_mean, got_variance = (z[:, 0] for z in moments(x))
    if bessel and n > 1:
        got_variance = got_variance * x.dtype.type(n / (n - 1))
    m = x.dtype.type(momentum)
    for got, exact, bound in zip((got_mean, got_variance), (mean, variance), bounds.values(), strict=True):
        keep = add(constant(1.0), constant(-momentum))
        exact = add(mul(keep, DD(old.astype(np.float64), zero)), mul(constant(momentum), exact))
        found.append(float(ratio(form(old, got, m), exact, bound).max()))
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("momentum", MOMENTA)
def test_every_form_of_the_update_is_within(form, momentum):
    """Weighted, moved and mirrored updates stay within A16 for old values from 1e-6 to 1e6, float32 and float64."""
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        x = rng.standard_normal((300, 8)) + rng.choice([0, 1.2345, 100], (300, 1))
        old = 10.0 ** rng.uniform(-6, 6, 300)
        for moments in (TWO_PASS, welford):
            for bessel in (False, True):
                assert max(evaluated(x.astype(dtype), old.astype(dtype), momentum, form, moments, bessel=bessel)) <= 1


def test_a_far_old_mean_replaced_at_momentum_one():
    """rm + 1 (mu - rm) with rm = 1e6 and mu = 1.2345 gives 1.25 in float32, which is sound."""
    x, old = np.full((1, 4), 1.2345, np.float32), np.full(1, 1e6, np.float32)
    assert moved(old, x[:, 0], np.float32(1))[0] == 1.25
    assert 0.05 < evaluated(x, old, 1.0, moved, TWO_PASS)[0] <= 1


def test_bessel_with_a_single_value():
    """A single value has no unbiased variance: the biased one counts, and the envelope is finite."""
    x, old = np.array([[2.5]], np.float32), np.array([4.0], np.float32)
    assert max(evaluated(x, old, 0.25, weighted, TWO_PASS, bessel=True)) <= 1
    envelope = envelope_of(
        "batch_norm",
        x,
        None,
        None,
        old,
        old,
        eps=1e-5,
        training=True,
        channel_axis=0,
        arithmetic=Arithmetic.of(np.float32),
    )
    assert all(np.isfinite(bound).all() for bound in envelope.running(old, old, 0.25, bessel=True).values())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_swapped_momentum_and_unbiased_variance_show(dtype):
    """A momentum that weighs the old statistic, and n/(n-1) at n = 8, exceed the envelope."""
    x = np.random.default_rng(4).standard_normal((1, 8)).astype(dtype)
    old = np.full(1, 3.0, dtype)
    swapped = lambda old, new, m: weighted(old, new, m.dtype.type(1) - m)  # noqa: E731
    unbiased = lambda x: (TWO_PASS(x)[0], TWO_PASS(x)[1] * x.dtype.type(8 / 7))  # noqa: E731
    assert min(evaluated(x, old, 0.1, swapped, TWO_PASS)) > 100
    assert evaluated(x, old, 0.1, weighted, unbiased)[1] > 100


def test_narrow_statistics_round_the_update():
    """In class H2 the update may be rounded to the 16 bits of the running statistics."""
    x, old = np.ones((1, 4), np.float16), np.full(1, 7.0, np.float16)
    bounds = [
        envelope_of("batch_norm", x, None, None, old, old, eps=1e-5, training=True, channel_axis=0,
            arithmetic=Arithmetic.of(np.float16, None, AccuracyClass(storage=storage)),
        ).running(old, old, 0.1, bessel=False)["new_running_mean"][0]
        for storage in ("H0", "H2")
    ]  # fmt: skip
    assert bounds[1] > 3 * bounds[0]
