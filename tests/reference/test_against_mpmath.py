"""The reference against arbitrary precision, in every regime."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from . import oracle
from .compare import Comparison
from .figures import LONG, SUBJECTS, defined
from .regimes import POINTS, draw

pytestmark = pytest.mark.exhaustive

#: The operator whose longest rows are compared in every run; those of the others take a minute each, at night.
_LONG_OF = "layer_norm"

CASES = [
    (operator, training, regime, n)
    for operator, training in SUBJECTS
    for regime, n in POINTS
    if defined(operator, regime, training=training) and (training or n <= 256)
]


@pytest.mark.parametrize(
    ("operator", "training", "regime", "n"),
    [
        pytest.param(*case, marks=[pytest.mark.nightly] if case[3] == LONG and case[0] != _LONG_OF else [])
        for case in CASES
    ],
)
def test_results_are_within_an_ulp(operator, training, regime, n):
    """Outputs and gradients are within 1 ulp where well conditioned, and within the envelope elsewhere."""
    comparison = Comparison(operator, regime, n, training=training, rows=1 if n == LONG else 3)
    figures = comparison.outputs() | comparison.gradients()
    assert {name: pair for name, pair in figures.items() if not max(pair) <= 1} == {}


@pytest.mark.parametrize(("operator", "training", "regime", "n"), [case for case in CASES if case[3] <= 3])
def test_further_derivatives_are_within_an_ulp(operator, training, regime, n):
    """Forward-mode and second-order derivatives are within 1 ulp where well conditioned, or the envelope."""
    comparison = Comparison(operator, regime, n, training=training)
    figures = comparison.jvp() | comparison.second_order()
    assert {name: pair for name, pair in figures.items() if not max(pair) <= 1} == {}


@pytest.mark.parametrize("regime", ["normal", "huge", "1e160, n = 2", "subnormal"])
def test_the_oracle_has_precision_to_spare(regime):
    """Twice the working precision changes the oracle's gradients by nothing float64 could show."""
    data = draw(regime, 2, columns=True)
    bits = oracle.precision(data.x, data.eps, data.gamma, data.g)
    gradients = []
    for factor in (1, 2):
        with mpmath.workprec(bits * factor):
            x, gamma, g = (oracle.exact(v) for v in (data.x, data.gamma, data.g))
            gradients.append(np.concatenate([z.reshape(-1) for z in oracle.backward(x, gamma, data.eps, g, 0)]))
    with mpmath.workprec(bits * 2):
        assert all(abs(a - b) <= mpmath.mpf(2) ** -120 * abs(b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("shared", [0, 1])
def test_the_oracles_gradient_is_the_derivative_of_its_forward(shared):
    """<g, forward along t> is <gradients, t>, with the forward derivative taken by dual numbers."""
    data = draw("normal", 3, columns=shared == 0)
    shape = (1, -1) if shared == 0 else (-1, 1)
    with mpmath.workprec(300):
        x, g, tx = (oracle.exact(v) for v in (data.x, data.g, np.cos(data.x)))
        gamma, beta, tgamma = (oracle.exact(v).reshape(shape) for v in (data.gamma, data.beta, np.cos(data.gamma)))
        along = oracle.forward_along(x, gamma, beta, data.eps, tx, tgamma, beta)
        dx, dgamma, dbeta = oracle.backward(x, gamma, data.eps, g, shared)
        difference = (along * g).sum() - (dx * tx).sum() - (dgamma * tgamma).sum() - (dbeta * beta).sum()
        assert abs(difference) < mpmath.mpf(2) ** -280
