"""The propagated envelope of forward-mode and second-order derivatives (A17) against several arrangements."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.conformance.sound import SOUND
from normspec.reference.accuracy import AccuracyClass, Arithmetic
from normspec.reference.envelope import envelope_of
from normspec.reference.layer_norm import layer_norm_jvp_exact, layer_norm_vjp_vjp_exact

from .envelope_data import adversarial, regimes
from .envelope_judge import ratio
from .envelope_tape import Node, folded, gradients, layer_norm, two_pass

SETTINGS = {"eps": 1e-5, "axes": (-1,)}


def operands(n: int, dtype: type, seed: int = 0) -> list[np.ndarray]:
    """x, gamma, beta, g, a, b, c: rows of every kind, and operands with a mean of their own."""
    rng = np.random.default_rng(seed)
    hard = adversarial(rng, 3, n, dtype)
    excluded = ("subnormal", "near_overflow", "heavy_tailed")
    x = np.concatenate([hard, regimes(n, 1e-5, dtype, seed, exclude=excluded)])
    row, like_x = lambda: rng.standard_normal(n), lambda: 0.3 + rng.standard_normal(x.shape)
    return [z.astype(dtype) for z in (x, row(), row(), like_x(), like_x(), row(), row())]


def by_tape(xhat, x, gamma, beta, g, a, b, c):
    """Reverse over reverse: the gradients of <a, dx> + <b, dgamma> + <c, dbeta>."""
    x, gamma, beta, g, a, b, c = (Node(np.atleast_2d(z)) for z in (x, gamma, beta, g, a, b, c))
    first = gradients(layer_norm(xhat, x, gamma, beta, SETTINGS["eps"]), g, (x, gamma, beta))
    total = None
    for gradient, seed in zip(first, (a, b, c), strict=True):
        found = gradients(gradient, seed, (x, gamma, g))
        total = found if total is None else [p + q for p, q in zip(total, found, strict=True)]
    return total[0].value, total[1].value[0], total[2].value


def tangent_by_tape(xhat, x, gamma, beta, tx, tgamma, tbeta):
    """Forward mode as the gradient of a gradient: <dx, tx> + ... is linear in g, and its gradient is ty."""
    x, gamma, beta, tx, tgamma, tbeta = (Node(np.atleast_2d(z)) for z in (x, gamma, beta, tx, tgamma, tbeta))
    g = Node(np.ones_like(x.value))
    first = gradients(layer_norm(xhat, x, gamma, beta, SETTINGS["eps"]), g, (x, gamma, beta))
    parts = [gradients(z, seed, (g,))[0] for z, seed in zip(first, (tx, tgamma, tbeta), strict=True)]
    return (parts[0] + parts[1] + parts[2]).value


def written_out(name: str):
    """The closed form, in the arrangement of a sound variant."""
    variant = next(s for s in SOUND if s.name == f"ln-{name}").build()
    return (
        lambda x, gamma, beta, g, a, b, c: variant.vjp_vjp(x, gamma, beta, g, a, b, c, **SETTINGS),
        lambda x, gamma, beta, *t: variant.jvp(x, gamma, beta, *t, **SETTINGS),
    )


def _taped(xhat):
    return (lambda *z: by_tape(xhat, *z), lambda *z: tangent_by_tape(xhat, *z))


ARRANGEMENTS = {
    "tape": _taped(two_pass),
    "folded tape": _taped(folded),
    **{f"closed, {name}": written_out(name) for name in ("two-pass", "welford", "tree-sums", "reversed-sums")},
}


@pytest.mark.parametrize("name", ARRANGEMENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_second_order_is_within(dtype, name):
    """Every arrangement of the gradient of the gradient is within the propagated envelope."""
    for n in (2, 3, 8, 33):
        x, gamma, beta, g, a, b, c = operands(n, dtype)
        got = ARRANGEMENTS[name][0](x, gamma, beta, g, a, b, c)
        exact = layer_norm_vjp_vjp_exact(x, gamma, beta, g, a, b, c, **SETTINGS)
        envelope = envelope_of("layer_norm", x, gamma, beta, **SETTINGS, arithmetic=Arithmetic.of(dtype))
        for values, truth, (result, bound) in zip(got, exact, envelope.vjp_vjp(g, a, b, c).items(), strict=True):
            assert np.isfinite(bound).all()
            assert ratio(values, truth, bound).max() <= 1, (result, n)


@pytest.mark.parametrize("name", ARRANGEMENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_mode_is_within(dtype, name):
    """Every arrangement of the forward-mode derivative is within the propagated envelope."""
    for n in (2, 3, 8, 33):
        x, gamma, beta, _, *tangents = operands(n, dtype)
        got = ARRANGEMENTS[name][1](x, gamma, beta, *tangents)
        exact = layer_norm_jvp_exact(x, gamma, beta, *tangents, **SETTINGS)
        envelope = envelope_of("layer_norm", x, gamma, beta, **SETTINGS, arithmetic=Arithmetic.of(dtype))
        bound = envelope.jvp(*tangents)
        assert np.isfinite(bound).all()
        assert ratio(got, exact, bound).max() <= 1, n


@pytest.mark.parametrize("variance", ["centred", "one-pass"])
def test_parameters_that_are_none_are_ones_and_zeros(variance):
    """They leave y as it is, so they cost nothing: its envelope is that with a gamma of ones and a beta of zeros."""
    x, gamma, beta, g, *_ = operands(8, np.float32)
    arithmetic = Arithmetic.of(np.float32, None, AccuracyClass(variance=variance))

    def bounds(gamma, beta):
        envelope = envelope_of("layer_norm", x, gamma, beta, **SETTINGS, arithmetic=arithmetic)
        return envelope.y(), envelope.gradients(g)["dx"]

    ones, zeros = np.ones_like(gamma), np.zeros_like(beta)
    for absent, present in (((None, beta), (ones, beta)), ((gamma, None), (gamma, zeros))):
        for bare, full in zip(bounds(*absent), bounds(*present), strict=True):
            np.testing.assert_array_equal(bare, full)


def test_a_tangent_that_is_none_is_zero():
    """The forward-mode envelope of constant gamma and beta is that of tangents of zeros."""
    x, gamma, beta, _, tx, *_ = operands(8, np.float32)
    envelope = envelope_of("layer_norm", x, gamma, beta, **SETTINGS, arithmetic=Arithmetic.of(np.float32))
    zeros = np.zeros_like(gamma)
    np.testing.assert_array_equal(envelope.jvp(tx, None, None), envelope.jvp(tx, zeros, zeros))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_second_order_faults_show(dtype):
    """A term left out of a second-order result exceeds the envelope on plain rows."""
    rng = np.random.default_rng(1)
    x, g, a = (rng.standard_normal((4, 8)).astype(dtype) for _ in range(3))
    gamma, beta, b, c = (rng.standard_normal(8).astype(dtype) for _ in range(4))
    exact = layer_norm_vjp_vjp_exact(x, gamma, beta, g, a, b, c, **SETTINGS)
    arithmetic = Arithmetic.of(dtype, None, AccuracyClass())
    bounds = envelope_of("layer_norm", x, gamma, beta, **SETTINGS, arithmetic=arithmetic).vjp_vjp(g, a, b, c)
    x_bar, gamma_bar, g_bar = by_tape(two_pass, x, gamma, beta, g, np.zeros_like(a), b, c)
    for values, truth, bound in zip((x_bar, gamma_bar, g_bar), exact, bounds.values(), strict=True):
        assert ratio(values, truth, bound).max() > 100  # without the cotangent of dx
    no_c = by_tape(two_pass, x, gamma, beta, g, a, b, np.zeros_like(c))[2]
    assert ratio(no_c, exact[2], bounds["g"]).max() > 100
