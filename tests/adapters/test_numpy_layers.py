"""The built-in NumPy layers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.numpy.operators import function

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
LAYER_NORM = {"eps": 0.1, "axes": (-1,)}
BATCH_NORM = {"eps": 0.1, "momentum": 0.3, "channel_axis": -1}


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_is_its_formula(layer_norm_inputs, dtype):
    """y is the textbook formula in float64, up to a few roundings, in x's dtype."""
    x, gamma, beta = (array.astype(dtype) for array in layer_norm_inputs.values())
    wide = x.astype(float)
    xhat = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 0.1)
    y = function("layer_norm")(x, gamma, beta, **LAYER_NORM)
    assert y.dtype == dtype
    np.testing.assert_allclose(
        y.astype(float), gamma.astype(float) * xhat + beta.astype(float), atol=8 * float(ml_dtypes.finfo(dtype).eps)
    )


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_batch_norm_is_its_formula(training, axis):
    """y and the running statistics follow the textbook formula, for any channel axis."""
    rng = np.random.Generator(np.random.Philox(3))
    x = rng.normal(1.0, 2.0, (3, 4, 5))
    c = x.shape[axis]
    gamma, beta, mean, var = rng.normal(size=c), rng.normal(size=c), rng.normal(size=c), rng.uniform(1, 2, c)
    last = np.moveaxis(x, axis, -1)
    mu, v = (last.mean((0, 1)), last.var((0, 1))) if training else (mean, var)
    expected = np.moveaxis((last - mu) / np.sqrt(v + 0.1) * gamma + beta, -1, axis)
    settings = {"eps": 0.1, "momentum": 0.3, "training": training, "channel_axis": axis}
    y, new_mean, new_var = function("batch_norm")(x, gamma, beta, mean, var, **settings)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(new_mean, 0.7 * mean + 0.3 * mu if training else mean, rtol=1e-12)
    np.testing.assert_allclose(new_var, 0.7 * var + 0.3 * v if training else var, rtol=1e-12)


def _problem(op, inputs, training):
    """The operator as y(x, gamma, beta), with its derivatives in the same form."""
    names = list(inputs)
    others = [inputs[name] for name in names[3:]]
    settings = LAYER_NORM if op == "layer_norm" else {**BATCH_NORM, "training": training}

    def call(suffix):
        made = function(op, suffix)
        return lambda x, gamma, beta, *more: made(x, gamma, beta, *others, *more, **settings)

    plain = call("call")
    first = plain if op == "layer_norm" else lambda *arrays: plain(*arrays)[0]
    return first, call("vjp"), call("jvp"), call("vjp_vjp"), [inputs[name] for name in names[:3]]


@pytest.mark.parametrize(("op", "training"), [("layer_norm", True), ("batch_norm", True), ("batch_norm", False)])
def test_derivatives_agree_with_finite_differences(op, training, layer_norm_inputs, batch_norm_inputs):
    """jvp is the slope of y; vjp is its transpose; vjp_vjp is the transpose of the slope of vjp."""
    y, vjp, jvp, vjp_vjp, point = _problem(op, layer_norm_inputs if op == "layer_norm" else batch_norm_inputs, training)
    rng = np.random.Generator(np.random.Philox(4))
    step = [rng.normal(size=array.shape) for array in point]
    g, g_step = rng.normal(size=point[0].shape), rng.normal(size=point[0].shape)
    h = 1e-6

    def moved(t):
        return [array + t * along for array, along in zip(point, step, strict=True)]

    slope = (y(*moved(h)) - y(*moved(-h))) / (2 * h)
    np.testing.assert_allclose(jvp(*point, *step), slope, atol=1e-7)
    gradients = vjp(*point, g)
    pulled = sum((a * b).sum() for a, b in zip(gradients, step, strict=True))
    assert pulled == pytest.approx((slope * g).sum(), abs=1e-7)

    cotangents = [rng.normal(size=array.shape) for array in point]

    def paired(t):
        return sum((a * b).sum() for a, b in zip(vjp(*moved(t), g + t * g_step), cotangents, strict=True))

    x_bar, gamma_bar, g_bar = vjp_vjp(*point, g, *cotangents)
    expected = (x_bar * step[0]).sum() + (gamma_bar * step[1]).sum() + (g_bar * g_step).sum()
    assert (paired(h) - paired(-h)) / (2 * h) == pytest.approx(expected, abs=1e-6)


def test_absent_parameters_are_ones_and_zeros(layer_norm_inputs):
    """None for gamma or beta means one or zero, and has no gradient."""
    x = layer_norm_inputs["x"]
    ones, zeros = np.ones(7), np.zeros(7)
    assert (
        function("layer_norm")(x, None, None, **LAYER_NORM) == function("layer_norm")(x, ones, zeros, **LAYER_NORM)
    ).all()
    assert function("layer_norm", "vjp")(x, None, None, x, **LAYER_NORM)[1:] == (None, None)
    assert function("layer_norm", "vjp_vjp")(x, None, None, x, x, None, None, **LAYER_NORM)[1] is None


def test_large_mean_costs_no_digits():
    """Deviations are formed before they are squared."""
    x = np.array([[4095, 4096, 4097, 4100]], np.float32)
    y = function("layer_norm")(x, None, None, eps=0.0, axes=(-1,))
    np.testing.assert_allclose(y, function("layer_norm")(x - 4096, None, None, eps=0.0, axes=(-1,)), rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_group(layer_norm_inputs, value):
    """A NaN or Inf reaches its own group and no other."""
    x = layer_norm_inputs["x"]
    clean = function("layer_norm")(x, None, None, **LAYER_NORM)
    x[1, 2] = value
    with np.errstate(invalid="ignore"):
        y = function("layer_norm")(x, None, None, **LAYER_NORM)
    assert np.isnan(y[1]).all()
    assert (np.delete(y, 1, 0) == np.delete(clean, 1, 0)).all()


def test_one_value_in_a_group_gives_beta():
    """A group of one element, or of equal ones, is beta, also where 1/sqrt(eps) is large."""
    for eps in (1e-5, 1e-30):
        y = function("layer_norm")(np.full((2, 1), 3, np.float32), None, np.full(1, 5, np.float32), eps=eps, axes=(-1,))
        assert (y == 5).all()


def test_no_groups(layer_norm_inputs):
    """No group gives an empty y and parameter gradients of zero."""
    gamma, beta = layer_norm_inputs["gamma"], layer_norm_inputs["beta"]
    x = np.zeros((0, 7))
    dx, dgamma, dbeta = function("layer_norm", "vjp")(x, gamma, beta, x, **LAYER_NORM)
    assert function("layer_norm")(x, gamma, beta, **LAYER_NORM).shape == dx.shape == (0, 7)
    assert not dgamma.any()
    assert not dbeta.any()


def test_empty_batch_leaves_the_statistics(batch_norm_inputs):
    """Training on an empty batch returns an empty y and the statistics as given."""
    _, gamma, beta, mean, var = batch_norm_inputs.values()
    y, new_mean, new_var = function("batch_norm")(np.zeros((0, 3)), gamma, beta, mean, var, training=True, **BATCH_NORM)
    assert y.shape == (0, 3)
    assert (new_mean == mean).all()
    assert (new_var == var).all()


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_momentum_at_its_ends(batch_norm_inputs, momentum):
    """Momentum 0 keeps the running statistic and 1 replaces it, whatever the other value is."""
    settings = {**BATCH_NORM, "momentum": momentum}
    x, gamma, beta, mean, var = batch_norm_inputs.values()
    if momentum == 0:
        x = x * np.nan
    else:
        mean = mean * np.nan
    _, new_mean, _ = function("batch_norm")(x, gamma, beta, mean, var, training=True, **settings)
    assert np.isfinite(new_mean).all()


@pytest.mark.parametrize("training", [True, False])
def test_results_are_new_arrays(batch_norm_inputs, training):
    """No input is changed, and no input is returned."""
    before = {name: array.copy() for name, array in batch_norm_inputs.items()}
    results = function("batch_norm")(*batch_norm_inputs.values(), training=training, **BATCH_NORM)
    for name, array in batch_norm_inputs.items():
        assert (array == before[name]).all()
        assert not any(np.shares_memory(array, result) for result in results)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [1.0]}, "x must be an array, not list"),
        ({"x": np.zeros((4, 7), int)}, "x must hold floating point numbers, not int64"),
        ({"gamma": np.zeros(6)}, "gamma must have the shape"),
        ({"beta": np.zeros((1, 7))}, "beta must have the shape"),
        ({"eps": -1.0}, "eps must be a finite number"),
        ({"eps": np.nan}, "eps must be a finite number"),
        ({"axes": (-2,)}, "axes must be trailing axes"),
        ({"axes": (0,)}, "axes must be trailing axes"),
        ({"axes": ()}, "axes must be trailing axes"),
        ({"axes": (-3, -2, -1)}, "axes must be trailing axes"),
    ],
)
def test_layer_norm_refuses_bad_arguments(layer_norm_inputs, change, message):
    """Arguments that do not fit together raise ValueError."""
    arguments = {**layer_norm_inputs, **LAYER_NORM, **change}
    arrays = [arguments.pop(name) for name in layer_norm_inputs]
    with pytest.raises(ValueError, match=message):
        function("layer_norm")(*arrays, **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"channel_axis": 2}, "channel_axis must lie within"),
        ({"momentum": 1.5}, "momentum must be a number"),
        ({"momentum": np.nan}, "momentum must be a number"),
        ({"running_mean": None}, "running_mean must be an array, not NoneType"),
        ({"running_var": np.zeros(4)}, "running_var must have the shape"),
        ({"gamma": np.zeros(5)}, "gamma must have the shape"),
    ],
)
def test_batch_norm_refuses_bad_arguments(batch_norm_inputs, change, message):
    """Arguments that do not fit together raise ValueError."""
    arguments = {**batch_norm_inputs, **BATCH_NORM, "training": True, **change}
    arrays = [arguments.pop(name) for name in batch_norm_inputs]
    with pytest.raises(ValueError, match=message):
        function("batch_norm")(*arrays, **arguments)


def test_cotangent_of_another_shape_is_refused(layer_norm_inputs):
    """A cotangent has x's shape."""
    with pytest.raises(ValueError, match="g must have the shape"):
        function("layer_norm", "vjp")(*layer_norm_inputs.values(), np.zeros((4, 1)), **LAYER_NORM)


@pytest.mark.parametrize(
    ("shape", "axis", "message"),
    [
        ((2, 6), 0, "channel_axis must be another axis than that of the samples"),
        ((2, 6), -2, "channel_axis must be another axis than that of the samples"),
        ((6,), 0, "channel_axis must be another axis than that of the samples"),
        ((2, 0, 3), 1, "x must have at least one channel"),
    ],
)
def test_group_and_instance_norm_want_samples_and_channels(shape, axis, message):
    """Channels along the axis of the samples, and no channels, are refused."""
    x = np.ones(shape)
    with pytest.raises(ValueError, match=message):
        function("group_norm")(x, None, None, eps=0.1, groups=1, channel_axis=axis)
    with pytest.raises(ValueError, match=message):
        function("instance_norm")(x, None, None, eps=0.1, channel_axis=axis)
