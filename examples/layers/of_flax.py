"""Layers of Flax: one of one's own in each of its interfaces, and two that are made."""

from __future__ import annotations

import jax.numpy as jnp
from flax import linen, nnx
from jax import lax


class LinenRMSNorm(linen.Module):
    """RMSNorm over the last axis, in float32 at least."""

    epsilon: float = 1e-6

    @linen.compact
    def __call__(self, x):
        scale = self.param("scale", linen.initializers.ones, (x.shape[-1],))
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        y = wide * lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + self.epsilon)
        return (y * scale).astype(x.dtype)


class NnxLayerNorm(nnx.Module):
    """LayerNorm over the last axis, in float32 at least."""

    def __init__(self, dim, eps=1e-5, *, rngs):
        del rngs  # it begins with no random numbers
        self.gamma, self.beta, self.eps = nnx.Param(jnp.ones(dim)), nnx.Param(jnp.zeros(dim)), eps

    def __call__(self, x):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        centred = wide - jnp.mean(wide, axis=-1, keepdims=True)
        y = centred * lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + self.eps)
        return (y * self.gamma + self.beta).astype(x.dtype)


#: One that is made already: its channels and its eps are its own.
nnx_made = nnx.BatchNorm(12, momentum=0.9, rngs=nnx.Rngs(0))

#: A module of linen has no size of its own.
linen_made = linen.LayerNorm(epsilon=1e-5)
