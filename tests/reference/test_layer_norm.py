"""LayerNorm's reference on every kind of argument: shapes, axes, formats, missing and wrong ones."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import ml_dtypes
import numpy as np
import pytest

from normspec import reference
from normspec.reference import layer_norm, layer_norm_exact, layer_norm_jvp, layer_norm_vjp, layer_norm_vjp_vjp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 3, 5))
G = RNG.standard_normal(X.shape)
GAMMA, BETA = RNG.standard_normal((2, 3, 5))
AXES = (-2, -1)
EPS = 1e-3


def test_it_normalises_over_exactly_the_axes_given():
    """Over two axes the result is that over one axis of the flattened array, bit for bit."""
    flat = layer_norm(X.reshape(4, 15), GAMMA.reshape(15), BETA.reshape(15), eps=EPS, axes=(-1,))
    assert np.array_equal(layer_norm(X, GAMMA, BETA, eps=EPS, axes=AXES), flat.reshape(X.shape))
    dx, dgamma, dbeta = layer_norm_vjp(X, GAMMA, BETA, G, eps=EPS, axes=AXES)
    assert (dx.shape, dgamma.shape, dbeta.shape) == (X.shape, GAMMA.shape, BETA.shape)


def test_missing_parameters_are_ones_and_zeros():
    """None for gamma or beta is ones or zeros, and has no gradient."""
    ones, zeros = np.ones_like(GAMMA), np.zeros_like(BETA)
    bare = layer_norm(X, None, None, eps=EPS, axes=AXES)
    assert np.array_equal(bare, layer_norm(X, ones, zeros, eps=EPS, axes=AXES))
    dx, dgamma, dbeta = layer_norm_vjp(X, None, None, G, eps=EPS, axes=AXES)
    assert dgamma is dbeta is None
    assert np.array_equal(dx, layer_norm_vjp(X, ones, zeros, G, eps=EPS, axes=AXES)[0])
    x_bar, gamma_bar, g_bar = layer_norm_vjp_vjp(X, None, BETA, G, X, None, BETA, eps=EPS, axes=AXES)
    assert gamma_bar is None
    assert x_bar.shape == g_bar.shape == X.shape


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, ">f8"])
def test_every_format_is_taken_exactly_as_given(dtype):
    """An array of a narrower format gives the same as its values in float64, and the result is float64."""
    x, gamma = X.astype(dtype), GAMMA.astype(dtype)
    y = layer_norm(x, gamma, BETA, eps=EPS, axes=AXES)
    assert y.dtype == np.float64
    assert np.array_equal(y, layer_norm(x.astype(float), gamma.astype(float), BETA, eps=EPS, axes=AXES))


def test_layout_makes_no_difference_and_nothing_is_written_to():
    """Transposed, strided, reversed, broadcast and read-only arrays give what their contiguous copies give."""
    wide = np.zeros((8, 5, 3))
    wide[::2] = X.transpose(0, 2, 1)
    x = wide[::2].transpose(0, 2, 1)[::-1]
    g = np.broadcast_to(G[:1], X.shape)
    x.flags.writeable = False
    before = x.copy()
    views = layer_norm_vjp(x, GAMMA[::-1], BETA, g, eps=EPS, axes=AXES)
    copies = layer_norm_vjp(x.copy(), GAMMA[::-1].copy(), BETA, g.copy(), eps=EPS, axes=AXES)
    assert all(np.array_equal(a, b) for a, b in zip(views, copies, strict=True))
    assert np.array_equal(x, before)


def test_no_groups_and_no_features():
    """No groups give an empty y and zero parameter gradients; no features give empty results."""
    empty = np.zeros((0, 3, 5))
    assert layer_norm(empty, GAMMA, BETA, eps=EPS, axes=AXES).shape == empty.shape
    dx, dgamma, dbeta = layer_norm_vjp(empty, GAMMA, BETA, empty, eps=EPS, axes=AXES)
    assert dx.shape == empty.shape
    assert np.array_equal(dgamma, np.zeros((3, 5)))
    assert np.array_equal(dbeta, np.zeros((3, 5)))
    assert layer_norm(np.zeros((4, 0)), None, None, eps=EPS, axes=(-1,)).shape == (4, 0)


def test_one_feature_gives_beta_and_no_gradient():
    """A group of one element is its own mean: y is beta, dx and dgamma are zero."""
    x, beta = np.array([[1e300], [-5e-324], [3.0]]), np.array([0.1])
    assert np.array_equal(layer_norm(x, np.array([7.0]), beta, eps=EPS, axes=(-1,)), np.full((3, 1), 0.1))
    dx, dgamma, dbeta = layer_norm_vjp(x, np.array([7.0]), beta, np.ones((3, 1)), eps=EPS, axes=(-1,))
    assert not dx.any()
    assert (dgamma.item(), dbeta.item()) == (0.0, 3.0)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_group(poison):
    """A NaN or infinity makes y and dx of its own group NaN and changes no bit elsewhere."""
    x = X.copy()
    x[2, 1, 3] = poison
    for clean, dirty in (
        (layer_norm(X, GAMMA, BETA, eps=EPS, axes=AXES), layer_norm(x, GAMMA, BETA, eps=EPS, axes=AXES)),
        (
            layer_norm_vjp(X, GAMMA, BETA, G, eps=EPS, axes=AXES)[0],
            layer_norm_vjp(x, GAMMA, BETA, G, eps=EPS, axes=AXES)[0],
        ),
    ):
        assert np.isnan(dirty[2]).all()
        assert np.array_equal(np.delete(dirty, 2, axis=0), np.delete(clean, 2, axis=0))


def test_no_variance_and_no_eps_is_undefined():
    """0/0 is NaN, only in that group."""
    x = np.array([[2.0, 2.0], [1.0, 3.0]])
    y = layer_norm(x, None, None, eps=0.0, axes=(-1,))
    assert np.array_equal(y, [[np.nan, np.nan], [-1.0, 1.0]], equal_nan=True)


def test_what_overflows_is_infinite():
    """A result beyond float64 is the infinity of its sign, others of the group are right."""
    y = layer_norm(np.array([[-1.0, 0.0, 1.0]]), np.full(3, 1.7e308), None, eps=0.0, axes=(-1,))
    assert y.tolist() == [[-np.inf, 0.0, np.inf]]


def test_the_double_double_results_round_to_the_public_ones():
    """hi of the exact result is the public one, and lo is below half an ulp of it."""
    exact = layer_norm_exact(X, GAMMA, BETA, eps=EPS, axes=AXES)
    assert np.array_equal(exact.hi, layer_norm(X, GAMMA, BETA, eps=EPS, axes=AXES))
    assert (np.abs(exact.lo) <= np.spacing(np.abs(exact.hi)) / 2).all()
    assert exact.lo.any()


@pytest.mark.parametrize("axes", [(), (1, 2), (-1, -2), (-2,), (-4, -3, -2, -1), -1, (0,)])
def test_axes_that_are_not_the_last_ones_are_refused(axes):
    """Axes must be trailing, negative and in order; the error says so."""
    with pytest.raises(ValueError, match=r"axes is .*: pass trailing axes of x"):
        layer_norm(X, None, None, eps=EPS, axes=axes)


def test_wrong_arguments_are_refused_with_what_to_pass():
    """A wrong dtype, shape or eps raises ValueError with the argument's name and what to pass."""
    with pytest.raises(ValueError, match=r"x is of dtype int64: pass"):
        layer_norm(np.ones((2, 3), dtype=np.int64), None, None, eps=EPS, axes=(-1,))
    with pytest.raises(ValueError, match=r"gamma has shape \(5,\): pass one of shape \(3, 5\)"):
        layer_norm(X, GAMMA[0], None, eps=EPS, axes=AXES)
    with pytest.raises(ValueError, match=r"beta has shape"):
        layer_norm_vjp(X, GAMMA, BETA[0], G, eps=EPS, axes=AXES)
    with pytest.raises(ValueError, match=r"g has shape"):
        layer_norm_vjp(X, GAMMA, BETA, G[:1], eps=EPS, axes=AXES)
    with pytest.raises(ValueError, match=r"tx is of dtype object"):
        layer_norm_jvp(X, GAMMA, BETA, None, None, None, eps=EPS, axes=AXES)
    for eps in (-1e-5, np.nan, np.inf, None):
        with pytest.raises(ValueError, match=r"eps is .*: pass a finite number, at least 0"):
            layer_norm(X, None, None, eps=eps, axes=AXES)


def test_what_is_no_array_is_refused_by_name():
    """Rows of unequal length, or a tensor that NumPy does not take, raise ValueError that names the argument."""

    class OnAnotherDevice:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    for x in ([[1.0, 2.0], [3.0]], OnAnotherDevice()):
        with pytest.raises(ValueError, match=r"x is no array \(.*\): pass an array of one of float16"):
            layer_norm(x, None, None, eps=EPS, axes=(-1,))
    with pytest.raises(ValueError, match=r"gamma is no array"):
        layer_norm(X, OnAnotherDevice(), None, eps=EPS, axes=AXES)


def test_a_single_number_is_refused():
    """An x without axes has none to normalise over or to hold channels, and each operator says so."""
    x = np.array(1.0)
    calls = [
        lambda: layer_norm(x, None, None, eps=EPS, axes=(-1,)),
        lambda: reference.rms_norm(x, None, eps=EPS, axes=(-1,)),
        lambda: reference.pre_norm(x, np.tanh, None, None, eps=EPS),
        lambda: reference.post_norm(x, np.tanh, None, None, eps=EPS),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"x has shape \(\): pass an array of at least one axis"):
            call()


@pytest.mark.parametrize("x", [np.array(1.0), np.ones(3)])
def test_channels_without_samples_are_refused(x):
    """BatchNorm wants an axis besides that of the channels."""
    settings = {"eps": EPS, "momentum": 0.1, "training": True, "channel_axis": 0}
    with pytest.raises(ValueError, match=r"pass an array of at least two axes, for samples and for channels"):
        reference.batch_norm(x, None, None, np.zeros(3), np.ones(3), **settings)


def test_a_rounded_function_says_what_it_returns():
    """help() and type hints name arrays where those of the exact function name double-doubles."""
    array = np.ndarray
    for function, returns in ((layer_norm, array), (layer_norm_vjp_vjp, tuple[array, array | None, array])):
        assert get_type_hints(function)["return"] == returns
        assert "DD" not in str(inspect.signature(function))
    assert inspect.signature(layer_norm_exact).return_annotation == "DD"


def test_public_names_are_documented_functions():
    """Every exported function has its own docstring and its own name."""
    for name in reference.__all__:
        assert getattr(reference, name).__name__ == name
        assert getattr(reference, name).__doc__
