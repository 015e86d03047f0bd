"""Causes where each new shape is compiled: they are those of other frameworks, since a known shape is quick."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from normspec.adapters.targets import resolve

from ..runs import run


def normalised(x, gamma, beta, eps, axes):
    """LayerNorm, divided by what ``eps`` makes of the variance."""
    d = x - x.mean(axes, keepdims=True)
    y = d / jnp.sqrt(eps(jnp.square(d).mean(axes, keepdims=True)))
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def test_a_described_mistake_is_described():
    """It takes dozens of cases to tell another eps from no pattern."""

    def eps_of_its_own(x, gamma, beta, *, eps, axes):
        return normalised(x, gamma, beta, lambda variance: variance + 1e-6, axes)

    target = resolve(eps_of_its_own, op="layer_norm", framework="jax")
    (cause,) = run(target, explain=True, forward_only=True).causes
    assert "y is what the formula gives with sqrt(var + 1e-06) in place of sqrt(var + eps)" in cause.sentence


def test_what_is_kept_of_a_compiled_call_is_named():
    """A function that is compiled for each shape and keeps the eps of its first call."""
    kept = {}

    def compiled_once(x, gamma, beta, *, eps, axes):
        key = x.shape, x.dtype, axes, gamma is None, beta is None
        if key not in kept:
            kept[key] = jax.jit(
                lambda x, gamma, beta: normalised(x, gamma, beta, lambda variance: variance + eps, axes)
            )
        return kept[key](x, gamma, beta)

    target = resolve(compiled_once, op="layer_norm", framework="jax")
    (cause,) = run(target, explain=True, forward_only=True).causes
    assert cause.faults == ("ln-eps-of-first-call",)
