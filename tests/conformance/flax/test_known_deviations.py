"""Flax's own mistakes, pinned in its own terms: once one is fixed, these tests say so."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

#: A group of mean 0, in bfloat16 without error, and parameters that bfloat16 cannot hold.
X = jnp.array([[-1000.0, 0.0, 1000.0]], jnp.bfloat16)
GAMMA, BETA = np.float32([816.5, 1, 1]), np.float32([1000.5, 0, 0])
#: 1000.5 - 816.5 sqrt(3/2) = 0.49581250876758..., by mpmath; rounded to bfloat16, 127 / 256.
EXACT = 0.49609375
#: The same with rounded parameters, 1000 - 816 sqrt(3/2) = 0.60818..., rounded.
NARROWED = 0.609375


def test_nnx_rounds_float32_parameters_to_the_dtype_of_the_computation():
    """nnx.LayerNorm(dtype=bfloat16) reads its float32 scale and bias as bfloat16; linen.LayerNorm does not."""
    layer = nnx.LayerNorm(3, dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    layer.scale[...], layer.bias[...] = jnp.asarray(GAMMA), jnp.asarray(BETA)
    assert layer.scale[...].dtype == layer.bias[...].dtype == jnp.float32
    assert layer(X)[0, 0] == NARROWED
    variables = {"params": {"scale": GAMMA, "bias": BETA}}
    assert linen.LayerNorm(dtype=jnp.bfloat16).apply(variables, X)[0, 0] == EXACT


def test_nnx_rounds_the_running_statistics_in_inference():
    """nnx.BatchNorm(dtype=bfloat16) reads a running mean of 1000.5 as 1000; linen.BatchNorm does not."""
    x = jnp.array([[1000.0]], jnp.bfloat16)
    mean = jnp.array([1000.5])
    layer = nnx.BatchNorm(1, dtype=jnp.bfloat16, use_running_average=True, rngs=nnx.Rngs(0))
    layer.mean[...] = mean
    assert layer(x)[0, 0] == 0
    variables = {
        "params": {"scale": jnp.ones(1), "bias": jnp.zeros(1)},
        "batch_stats": {"mean": mean, "var": jnp.ones(1)},
    }
    assert linen.BatchNorm(dtype=jnp.bfloat16, use_running_average=True).apply(variables, x)[0, 0] == -0.5


def test_nnx_batch_norm_widens_16_bit_data():
    """Without dtype, all else bfloat16, nnx.BatchNorm returns float32 for its statistics' sake, and linen bfloat16."""
    layer = nnx.BatchNorm(3, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    assert layer(X).dtype == jnp.float32
    plain = linen.BatchNorm(param_dtype=jnp.bfloat16, use_running_average=False)
    assert plain.init_with_output(jax.random.key(0), X)[0].dtype == jnp.bfloat16


def test_an_empty_batch_ends_the_statistics():
    """A batch without samples makes the running mean NaN, in nnx and in linen."""
    layer = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    layer(jnp.zeros((0, 3)))
    assert jnp.isnan(layer.mean[...]).all()
    plain = linen.BatchNorm(use_running_average=False)
    variables = plain.init(jax.random.key(0), jnp.ones((2, 3)))
    _, updated = plain.apply(variables, jnp.zeros((0, 3)), mutable=["batch_stats"])
    assert jnp.isnan(updated["batch_stats"]["mean"]).all()
