"""Identities between the derivatives, checked in exact rational arithmetic on the double-double results."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normspec import reference
from normspec.reference import DD

RNG = np.random.default_rng(2)
SHAPE = (4, 7)
X, G, A, TX, TG = RNG.standard_normal((5, *SHAPE))
SIDES = {
    "layer_norm": (7, (), {"eps": 0.1, "axes": (-1,)}),
    "batch_norm": (7, (np.full(7, 0.5), np.full(7, 2.0)), {"training": True}),
    "batch_norm inference": (7, (np.full(7, 0.5), np.full(7, 2.0)), {"training": False}),
}
#: The identities hold to double-double accuracy: sums of some hundred terms of magnitude 1 to 100.
CLOSE = Fraction(1, 2**90)


def inner(u, v: np.ndarray) -> Fraction:
    """Return the sum of products, exactly; u may be a DD."""
    words = u if isinstance(u, DD) else (u,)
    return sum(
        (Fraction(a) * Fraction(b) for w in words for a, b in zip(w.ravel().tolist(), v.ravel().tolist(), strict=True)),
        Fraction(0),
    )


class Side:
    """One operator's derivatives, at fixed parameters and settings."""

    def __init__(self, name: str) -> None:
        size, self.given, self.settings = SIDES[name]
        if "training" in self.settings:
            self.settings = {**self.settings, "eps": 0.1, "momentum": 0.1, "channel_axis": -1}
        self.operator = name.split()[0]
        rng = np.random.default_rng(3)
        self.gamma, self.beta, self.tgamma, self.tbeta, self.b, self.c = rng.standard_normal((6, size))

    def __call__(self, derivative: str, *operands, x=X):
        function = getattr(reference, f"{self.operator}_{derivative}_exact")
        return function(x, self.gamma, self.beta, *self.given, *operands, **self.settings)


@pytest.fixture(params=SIDES)
def side(request) -> Side:
    """Return each operator, BatchNorm in both modes."""
    return Side(request.param)


def test_forward_and_reverse_mode_are_transposes(side):
    """<g, jvp(t)> = <vjp(g), t>."""
    along = side("jvp", TX, side.tgamma, side.tbeta)
    dx, dgamma, dbeta = side("vjp", G)
    back = inner(dx, TX) + inner(dgamma, side.tgamma) + inner(dbeta, side.tbeta)
    assert abs(inner(along, G) - back) < CLOSE


def test_the_cotangents_gradient_is_forward_mode(side):
    """The vjp is linear in g, so that g_bar at (a, b, c) is the jvp along (a, b, c)."""
    _, _, g_bar = side("vjp_vjp", G, A, side.b, side.c)
    along = side("jvp", A, side.b, side.c)
    assert all(abs(Fraction(p) - Fraction(q)) < CLOSE for p, q in zip(g_bar.hi.flat, along.hi.flat, strict=True))


def test_the_second_derivative_is_symmetric(side):
    """<x_bar, gamma_bar at (a, b), s> = <x_bar, gamma_bar at s, (a, b)>: mixed partial derivatives commute."""
    here = side("vjp_vjp", G, A, side.b, None)
    there = side("vjp_vjp", G, TX, side.tgamma, None)
    left = inner(here[0], TX) + inner(here[1], side.tgamma)
    right = inner(there[0], A) + inner(there[1], side.b)
    assert abs(left - right) < CLOSE


def test_training_gradients_sum_to_zero_over_a_group():
    """A shift of the group changes no y: each group's dx sums to zero, to double-double accuracy."""
    dx, _, _ = Side("layer_norm")("vjp", G)
    for hi, lo in zip(dx.hi, dx.lo, strict=True):
        assert abs(inner(DD(hi, lo), np.ones(7))) < CLOSE
