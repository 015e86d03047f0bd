"""A JAX function with one path for plain calls and another for calls that are differentiated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from normspec.adapters.targets import resolve

from ..runs import result, run


def moments(x):
    """The deviation from the mean, and the variance, over the last axis."""
    d = x - x.mean(-1, keepdims=True)
    return d, jnp.square(d).mean(-1, keepdims=True)


@jax.custom_vjp
def normalised(x, eps):
    """Divide by the root."""
    d, variance = moments(x)
    return d / jnp.sqrt(variance + eps)


def forward(x, eps):
    """Multiply by the reciprocal root, which the gradient needs anyway: other roundings than in a plain call."""
    d, variance = moments(x)
    r = jax.lax.rsqrt(variance + eps)
    return d * r, (d * r, r)


def backward(saved, g):
    """dx; eps is a number."""
    y, r = saved
    return r * (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True)), None


normalised.defvjp(forward, backward)


def layer_norm(x, gamma, beta, *, eps, axes):
    """LayerNorm over one or several trailing axes."""
    flat = x.reshape(*x.shape[: x.ndim - len(axes)], -1)
    y = normalised(flat.astype(jnp.promote_types(x.dtype, jnp.float32)), eps).reshape(x.shape)
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(x.dtype)


@pytest.mark.parametrize("requirement", ["CM-P2", "CM-P4", "CM-P6", "CM-N1"])
def test_other_roundings_where_gradients_are_taken_are_sound(requirement):
    """What a call returned stays as it is, whatever the further call for its gradients returns."""
    target = resolve(layer_norm, op="layer_norm", framework="jax")
    assert result(run(target, requirements=(requirement,)), requirement).verdict.value == "pass"
