"""Equinox's own mistakes, pinned in its own terms: once one is fixed, these tests say so."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

#: Two samples of one channel: mean 0, variance 4.
X = jnp.array([[-2.0], [2.0]])


def _batch_norm(**settings):
    """A layer in mode "batch" and its state, and the function that runs it over a batch."""
    layer, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(1, axis_name="batch", mode="batch", **settings)

    def run(x, state, *, inference):
        mapped = jax.vmap(lambda one: layer(one, state, inference=inference), axis_name="batch", out_axes=(0, None))
        return mapped(x)

    return run, state


def test_batch_norm_widens_16_bit_data():
    """BatchNorm returns float32 for bfloat16 data where its parameters are float32; LayerNorm returns bfloat16."""
    run, state = _batch_norm()
    x = X.astype(jnp.bfloat16)
    assert run(x, state, inference=False)[0].dtype == jnp.float32
    assert jax.vmap(eqx.nn.LayerNorm(1))(x).dtype == jnp.bfloat16


def test_group_norm_rounds_the_terms_of_16_bit_gradients():
    """The gradient of a bfloat16 weight is a sum of rounded terms; for a float32 weight it is rounded once."""
    x, g = jnp.array([[0, 0, 0, 1]], jnp.bfloat16), jnp.array([[1, 1, 1, 3]], jnp.bfloat16)

    def gradient(dtype):
        layer = eqx.nn.GroupNorm(1, 1, eps=0.0, dtype=dtype)
        return eqx.filter_grad(lambda one: jnp.vdot(one(x).astype(jnp.float32), g.astype(jnp.float32)))(layer).weight

    # xhat is (-1, -1, -1, 3)/sqrt(3): 6/sqrt(3) = 3.46410..., in bfloat16 222/64; -3 * 0.578125 + 5.1875 = 221/64.
    assert gradient(jnp.bfloat16)[0] == 221 / 64
    assert gradient(jnp.float32)[0].astype(jnp.bfloat16) == 222 / 64


@pytest.mark.parametrize("batches", [1, 50, 200])
def test_inference_counts_the_initial_variance_as_data(batches):
    """
    After k batches of variance 4, inference divides by sqrt(4 + m^k / (1 - m^k) + eps), not by sqrt(4 + eps).

    The running variance begins at 1, but inference corrects it as though it had begun at 0. After one batch, at
    momentum 0.99, that is a variance of 103: y is 0.197 and should be 1.
    """
    run, state = _batch_norm(momentum=0.99)
    for _ in range(batches):
        _, state = run(X, state, inference=False)
    y, _ = run(X, state, inference=True)
    kept = 0.99**batches
    # float32 statistics, divided by 1 - m^k: 200 batches round 200 times.
    np.testing.assert_allclose(y.ravel()[1], 2 / np.sqrt(4 + kept / (1 - kept) + 1e-5), rtol=1e-4)
    assert y.ravel()[1] < {1: 0.2, 50: 0.93, 200: 0.99}[batches]


def test_an_empty_batch_ends_the_statistics():
    """A batch without samples makes the running mean and variance NaN, and with them all inference after it."""
    run, state = _batch_norm()
    _, state = run(X[:0], state, inference=False)
    y, _ = run(X, state, inference=True)
    assert jnp.isnan(y).all()
