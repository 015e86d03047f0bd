"""Second directional derivatives of the normalisations, against mpmath's differentiation of the plain formula."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from normspec import reference

RANDOM = np.random.default_rng(5)
X, TX, SX = (RANDOM.integers(-9, 10, (3, 5)) / 4 for _ in range(3))
EPS = 2.0**-6


def exact(shared: int, training: bool, parameters: list[np.ndarray]) -> np.ndarray:
    """d^2 y(x + a tx + b sx, gamma + a tgamma + b sgamma) / da db at 0, by polarisation of second derivatives."""
    gamma, tgamma, sgamma, mean, variance = ([mpmath.mpf(float(v)) for v in p] for p in parameters)
    found = np.empty(X.shape)
    for row in range(X.shape[0]):
        for column in range(X.shape[1]):
            place = row if shared else column

            def y(a, b, row=row, column=column, place=place):
                x = [mpmath.mpf(X[row, k]) + a * TX[row, k] + b * SX[row, k] for k in range(X.shape[1])]
                mu, var = mean[place], variance[place]
                if training:
                    mu = mpmath.fsum(x) / len(x)
                    var = mpmath.fsum((z - mu) ** 2 for z in x) / len(x)
                gain = gamma[place] + a * tgamma[place] + b * sgamma[place]
                return gain * (x[column] - mu) / mpmath.sqrt(var + EPS)

            found[row, column] = float(mpmath.diff(y, (0, 0), (1, 1)))
    return found


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shared", [0, 1])
def test_forward_over_forward_is_the_mixed_second_derivative(shared: int, training: bool) -> None:
    """layer_norm_jvp_jvp and batch_norm_jvp_jvp equal it, with parameters that move too; beta does not enter."""
    if not shared and not training:
        pytest.skip("LayerNorm has no inference")
    size = X.shape[0] if shared else X.shape[1]
    gamma, tgamma, sgamma, beta, mean = (RANDOM.integers(-9, 10, size) / 4 for _ in range(5))
    variance = RANDOM.integers(1, 9, size) / 4
    with mpmath.workdps(60):
        want = exact(shared, training, [gamma, tgamma, sgamma, mean, variance])
    if shared:
        settings = {"eps": EPS, "momentum": 0.1, "training": training, "channel_axis": 0}
        given = (X, gamma, beta, mean, variance, TX, tgamma, beta, SX, sgamma, beta)
        got = reference.batch_norm_jvp_jvp(*given, **settings)
    else:
        got = reference.layer_norm_jvp_jvp(X, gamma, beta, TX, tgamma, beta, SX, sgamma, beta, eps=EPS, axes=(-1,))
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
