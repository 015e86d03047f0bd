"""Layers of Equinox: BatchNorm, one that is made with its state, and two of one's own."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp


def batch_norm(channels, eps, momentum):
    """Make a BatchNorm that normalises by the statistics of the batch; its default mode takes the running ones."""
    return eqx.nn.BatchNorm(channels, "batch", eps=eps, momentum=momentum, mode="batch")


#: A layer and its state, as Equinox makes them.
with_state = eqx.nn.make_with_state(batch_norm)(12, 1e-5, 0.9)


class RMSNorm(eqx.Module):
    """RMSNorm of one sample, in float32 at least."""

    scale: jax.Array
    eps: float

    def __init__(self, dim, eps=1e-6):
        self.scale, self.eps = jnp.ones(dim), eps

    def __call__(self, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        y = wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide)) + self.eps)
        return (y * self.scale).astype(x.dtype)


class EpsBesideTheDeviation(eqx.Module):
    """LayerNorm of one sample with a mistake: eps is added to the deviation, and not to the variance."""

    weight: jax.Array
    bias: jax.Array
    eps: float = 1e-5

    def __init__(self, dim, eps=1e-5):
        self.weight, self.bias, self.eps = jnp.ones(dim), jnp.zeros(dim), eps

    def __call__(self, x):
        return (x - jnp.mean(x)) / (jnp.std(x) + self.eps) * self.weight + self.bias
