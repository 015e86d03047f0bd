"""BatchNorm's reference on every kind of argument: ranks, channel axes, modes, running statistics."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.reference import (
    batch_norm,
    batch_norm_exact,
    batch_norm_jvp,
    batch_norm_vjp,
    batch_norm_vjp_vjp,
    layer_norm,
    layer_norm_vjp,
)

RNG = np.random.default_rng(1)
X = RNG.standard_normal((4, 3, 5))
G, A = RNG.standard_normal((2, *X.shape))
GAMMA, BETA, MEAN, B, C = RNG.standard_normal((5, 3))
VAR = RNG.random(3)
SETTINGS = {"eps": 1e-3, "momentum": 0.3, "training": True, "channel_axis": 1}
INFERENCE = {**SETTINGS, "training": False}


def everything(x, g, a, settings):
    """Return every result of every function, in one tuple."""
    return (
        *batch_norm(x, GAMMA, BETA, MEAN, VAR, **settings),
        *batch_norm_vjp(x, GAMMA, BETA, MEAN, VAR, g, **settings),
        batch_norm_jvp(x, GAMMA, BETA, MEAN, VAR, a, B, C, **settings),
        *batch_norm_vjp_vjp(x, GAMMA, BETA, MEAN, VAR, g, a, B, C, **settings),
    )


@pytest.mark.parametrize("settings", [SETTINGS, INFERENCE], ids=["training", "inference"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_the_channel_axis_may_stand_anywhere(settings, axis):
    """Moving the channels of x, g and a to another axis moves the results', up to the order of sums."""
    here = everything(X, G, A, settings)
    x, g, a = (np.moveaxis(z, 1, axis) for z in (X, G, A))
    there = everything(x, g, a, {**settings, "channel_axis": axis})
    for z, w in zip(here, there, strict=True):
        moved = np.moveaxis(w, axis, 1) if w.ndim == 3 else w
        assert moved.shape == z.shape
        assert np.allclose(moved, z, rtol=2.0**-52, atol=0)


def test_training_is_layer_norm_of_the_transpose():
    """Channels-first and without parameters, training is LayerNorm over the rest, bit for bit."""
    x, g = X.reshape(4, 15), G.reshape(4, 15)
    settings = {**SETTINGS, "channel_axis": 0}
    given = (np.zeros(4), np.ones(4))
    y, _, _ = batch_norm(x, None, None, *given, **settings)
    dx, dgamma, dbeta = batch_norm_vjp(x, None, None, *given, g, **settings)
    assert np.array_equal(y, layer_norm(x, None, None, eps=1e-3, axes=(-1,)))
    assert np.array_equal(dx, layer_norm_vjp(x, None, None, g, eps=1e-3, axes=(-1,))[0])
    assert dgamma is dbeta is None


def test_inference_returns_the_statistics_as_given():
    """In inference the running statistics come back bit for bit, as new arrays."""
    mean, var = MEAN.astype(np.float32), VAR.astype(ml_dtypes.bfloat16)
    _, new_mean, new_var = batch_norm(X, GAMMA, BETA, mean, var, **INFERENCE)
    assert np.array_equal(new_mean, mean)
    assert np.array_equal(new_var, var.astype(float))
    _, new_mean, _ = batch_norm(X, GAMMA, BETA, MEAN, VAR, **INFERENCE)
    assert not np.shares_memory(new_mean, MEAN)


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_momentum_0_keeps_and_momentum_1_replaces_the_statistics(momentum):
    """Momentum 0 returns the running statistics, 1 those of x: the biased variance."""
    _, mean, var = batch_norm(X, None, None, MEAN, VAR, **{**SETTINGS, "momentum": momentum})
    if momentum == 0:
        assert np.array_equal(mean, MEAN)
        assert np.array_equal(var, VAR)
    else:
        assert np.allclose(mean, X.mean(axis=(0, 2)), rtol=1e-14)
        assert np.allclose(var, X.var(axis=(0, 2)), rtol=1e-14)


def test_nothing_is_written_to():
    """x, parameters, running statistics and cotangent are as they were."""
    arrays = [X, GAMMA, BETA, MEAN, VAR, G, A, B, C]
    before = [array.copy() for array in arrays]
    everything(X, G, A, SETTINGS)
    everything(X, G, A, INFERENCE)
    assert all(np.array_equal(array, old) for array, old in zip(arrays, before, strict=True))


@pytest.mark.parametrize("shape", [(0, 3, 5), (4, 3, 0)])
@pytest.mark.parametrize("settings", [SETTINGS, INFERENCE], ids=["training", "inference"])
def test_channels_without_values(shape, settings):
    """y is empty, the statistics are unchanged, the parameters' gradients zero."""
    x = np.zeros(shape)
    y, mean, var, dx, dgamma, dbeta, ty, x_bar, gamma_bar, g_bar = everything(x, x, x, settings)
    assert y.shape == dx.shape == ty.shape == x_bar.shape == g_bar.shape == shape
    assert np.array_equal(mean, MEAN)
    assert np.array_equal(var, VAR)
    assert not any(z.any() for z in (dgamma, dbeta, gamma_bar))


def test_no_channels():
    """Without channels everything is empty."""
    x, none = np.zeros((4, 0, 5)), np.zeros(0)
    y, mean, var = batch_norm(x, none, none, none, none, **SETTINGS)
    assert (y.shape, mean.shape, var.shape) == ((4, 0, 5), (0,), (0,))


def test_one_value_a_channel_gives_beta_and_finite_statistics():
    """A channel of one value is its own mean, its variance zero."""
    y, mean, var = batch_norm(np.array([[1e300, -2.0, 0.1]]), GAMMA, BETA, MEAN, VAR, **{**SETTINGS, "momentum": 1.0})
    assert np.array_equal(y, BETA[None])
    assert mean.tolist() == [1e300, -2.0, 0.1]
    assert not var.any()


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_channel(poison):
    """In training a NaN or infinity makes its channel NaN; in inference only its own element is not finite."""
    x = X.copy()
    x[2, 1, 3] = poison
    clean, dirty = (batch_norm(z, GAMMA, BETA, MEAN, VAR, **SETTINGS) for z in (X, x))
    assert np.isnan(dirty[0][:, 1]).all()
    assert not np.isfinite([dirty[1][1], dirty[2][1]]).any()
    for z, w, axis in zip(clean, dirty, (1, 0, 0), strict=True):
        assert np.array_equal(np.delete(z, 1, axis), np.delete(w, 1, axis))
    clean, dirty = (batch_norm(z, GAMMA, BETA, MEAN, VAR, **INFERENCE)[0] for z in (X, x))
    assert np.argwhere(clean != dirty).tolist() == [[2, 1, 3]]
    assert not np.isfinite(dirty[2, 1, 3])


def test_the_double_double_results_round_to_the_public_ones():
    """hi of each exact result is the public one."""
    exact = batch_norm_exact(X, GAMMA, BETA, MEAN, VAR, **SETTINGS)
    for z, w in zip(exact, batch_norm(X, GAMMA, BETA, MEAN, VAR, **SETTINGS), strict=True):
        assert np.array_equal(z.hi, w)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"channel_axis": 3}, r"channel_axis is 3: pass an integer from -3 to 2"),
        ({"channel_axis": (1,)}, r"channel_axis is \(1,\): pass an integer"),
        ({"momentum": 1.5}, r"momentum is 1.5: pass a finite number, at least 0 and at most 1"),
        ({"momentum": np.nan}, r"momentum is nan"),
        ({"eps": -1.0}, r"eps is -1.0: pass a finite number, at least 0"),
        ({"channel_axis": 0}, r"gamma has shape \(3,\): pass one of shape \(4,\)"),
    ],
)
def test_wrong_settings_are_refused_with_what_to_pass(change, message):
    """A wrong setting raises ValueError with its name and what to pass."""
    with pytest.raises(ValueError, match=message):
        batch_norm(X, GAMMA, BETA, MEAN, VAR, **{**SETTINGS, **change})


def test_running_statistics_are_required():
    """None for a running statistic is refused: a channel has both."""
    with pytest.raises(ValueError, match=r"running_mean is of dtype object: pass an array"):
        batch_norm(X, GAMMA, BETA, None, None, **SETTINGS)
