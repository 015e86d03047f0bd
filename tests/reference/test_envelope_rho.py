"""The relative error of the reciprocal root (A7)."""

from __future__ import annotations

import attrs
import mpmath
import numpy as np
import pytest
from mpmath import mpf

from normspec.reference.accuracy import REFERENCE_ARITHMETIC, AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of
from normspec.reference.envelope_rows import RowBounds
from normspec.reference.formats import FORMATS

U = [2.0**-102, 2.0**-53, 2.0**-24, 2.0**-8]


def rows_at(u: float, x: np.ndarray, eps: float) -> RowBounds:
    """The statistics of rows in a computation with this roundoff and no underflow."""
    arithmetic = attrs.evolve(REFERENCE_ARITHMETIC, u=u)
    return envelope_of("layer_norm", x, None, None, eps=eps, axes=(-1,), arithmetic=arithmetic).statistics


def closed_form(u: float, v: float, w: float, error: float) -> mpf:
    """A7 as it reads on paper: the larger of sqrt(w/w_low) (1+4u) - 1 and 1 - sqrt(w/w_high) (1-4u)."""
    with mpmath.workdps(80):
        u, v, w, error = (mpf(z) for z in (u, v, w, error))
        low = w - min(v, error) - 2 * u * w
        high = w + error + 2 * u * (w + error)
        if low <= 0:
            return mpf("inf")
        return max(mpmath.sqrt(w / low) * (1 + 4 * u) - 1, 1 - mpmath.sqrt(w / high) * (1 - 4 * u))


@pytest.mark.parametrize("u", U)
def test_rho_is_its_closed_form(u):
    """rho equals A7 in arbitrary precision at every roundoff, that of the reference included, and is never 0."""
    x = np.random.default_rng(0).standard_normal((20, 8)) * 10.0 ** np.arange(-10, 10)[:, None]
    rows = rows_at(u, x, 1e-5)
    for i in range(len(x)):
        expected = closed_form(u, rows.v[i, 0], rows.w[i, 0], rows.variance_error[i, 0])
        assert rows.rho[i, 0] == expected or float(abs(mpf(rows.rho[i, 0]) / expected - 1)) < 1e-12
        assert rows.rho[i, 0] > 4 * u


def test_rho_of_a_constant_group_is_finite_and_judges():
    """A constant group has no variance to lose: rho is a few roundings, however large E_v is relative to v."""
    rows = rows_at(2.0**-24, np.full((1, 8), 3.0), 1e-5)
    assert rows.v[0, 0] == 0 < rows.variance_error[0, 0]
    assert 4 * 2.0**-24 < rows.rho[0, 0] < 1e-3


def test_rho_is_infinite_where_the_denominator_may_vanish():
    """Without eps, a variance that may be computed as 0 leaves nothing to judge."""
    x = np.array([[1e8, 1e8 + 8, 1e8, 1e8 - 8]])
    assert np.isinf(rows_at(2.0**-24, x, 0.0).rho).all()


def test_eps_survives_in_the_storage_class_h0():
    """In float16 with class H0, eps = 1e-12, far below float16, changes y by more than its envelope."""
    x = np.array([[-6e-7, 6e-7, 0.0, 0.0]], np.float16)
    arithmetic = Arithmetic.of(np.float16)
    settings = {"axes": (-1,), "arithmetic": arithmetic}
    envelope = envelope_of("layer_norm", x, None, None, eps=1e-12, **settings)
    with_eps = envelope.statistics.xh
    without = envelope_of("layer_norm", x, None, None, eps=0.0, **settings).statistics.xh
    assert np.abs(with_eps - without).max() > envelope.y().max()
    assert np.isfinite(envelope.y()).all()


def test_flushed_subnormals_widen_the_envelope_of_tiny_groups():
    """In the class `flushed` a group of subnormals may count as zeros, and the envelope holds y itself."""
    x = np.array([[-1e-39, 1e-39, 3e-39, 0.0]], np.float32)
    accuracy = AccuracyClass(flushed=frozenset(FORMATS))
    arithmetic = Arithmetic.of(np.float32, None, accuracy)
    envelope = envelope_of("layer_norm", x, None, None, eps=1e-12, axes=(-1,), arithmetic=arithmetic)
    assert (envelope.y() >= np.abs(envelope.statistics.xh)).all()
