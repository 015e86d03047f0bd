"""Keras's own mistakes on the active backend, pinned in its own terms: once one is fixed, these tests say so."""

from __future__ import annotations

from dataclasses import replace

import keras
import ml_dtypes
import mpmath
import numpy as np
import pytest
from keras import ops

from normspec.adapters.keras import BRIDGE, target
from normspec.adapters.keras.bridge import BACKEND

from ..runs import run

on_torch = pytest.mark.skipif(BACKEND != "torch", reason="the other backends have no such fault")
on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="the other backends have no such fault")


def called(function, *arrays: np.ndarray) -> list[np.ndarray]:
    """The result of a function of Keras's tensors for these arrays, as arrays."""
    tensors = [BRIDGE.tensor(array, "contiguous", "cpu") for array in arrays]
    with BRIDGE.guarded(1, gradients=False):
        returned = function(*tensors)
        several = returned if isinstance(returned, (tuple, list)) else [returned]
        return [BRIDGE.array(one, "a result") for one in several]


def exact(group: list[float], eps: float) -> list[float]:
    """(x - mean)/sqrt(var + eps) by mpmath, with 50 digits."""
    with mpmath.workdps(50):
        x = [mpmath.mpf(value) for value in group]
        mean = mpmath.fsum(x) / len(x)
        var = mpmath.fsum((value - mean) ** 2 for value in x) / len(x)
        return [float((value - mean) / mpmath.sqrt(var + mpmath.mpf(eps))) for value in x]


# On every backend -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["LayerNormalization", "BatchNormalization"])
def test_float64_is_computed_in_float32(layer: str) -> None:
    """Except on TensorFlow the layers take float64, and return as float64 what they computed in float32."""
    column = layer == "BatchNormalization"

    def call(x):
        made = getattr(keras.layers, layer)(-1, epsilon=0.25, dtype="float64")
        return made(x, training=True) if column else made(x)

    group = [0.0, 1.0, 5.0]
    x = np.array([group]).T if column else np.array([group])
    (y,) = called(call, x)
    right = np.array(exact(group, 0.25)).reshape(x.shape)
    assert y.dtype == np.float64
    if BACKEND == "tensorflow":
        assert keras.backend.result_type("float64", "float32") == "float64"
        np.testing.assert_allclose(y, right, rtol=1e-14)
        return
    assert keras.backend.result_type("float64", "float32") == "float32"
    assert (y == y.astype(np.float32)).all()
    assert 1e-9 < np.abs(y - right).max() < 1e-6


def test_an_empty_batch_makes_the_running_statistics_nan() -> None:
    """The mean of nothing is NaN, and the moving averages are from then on; no inference survives it."""

    def call(x):
        layer = keras.layers.BatchNormalization()
        layer(x, training=True)
        return layer.moving_mean.value, layer.moving_variance.value

    assert np.isnan(called(call, np.zeros((0, 2), np.float32))).all()


def test_a_gain_beyond_float16_makes_nan_of_a_constant_channel() -> None:
    """gamma/sqrt(var + eps) is 10^5, beyond float16: 0 times infinity is NaN, and R3 lets it be."""

    def call(x, gamma):
        return ops.batch_normalization(x, *ops.moments(x, [0]), axis=-1, scale=gamma, epsilon=1e-4)

    one, gamma = np.ones((2, 1), np.float16), np.array([1000.0], np.float16)
    assert np.isnan(called(call, one, gamma)).all()
    assert (called(call, one.astype(np.float32), gamma.astype(np.float32))[0] == 0).all()


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch's moments of bfloat16 are not clipped")
def test_moments_of_bfloat16_are_clipped_to_the_range_of_float16() -> None:
    """The mean of 10^5 and 10^5 is 65536, and the variance of -512 and 512 too, where it is 2^18."""

    def call(x):
        return ops.moments(ops.cast(x, "bfloat16"), [0])

    mean, _ = called(call, np.array([1e5, 1e5], np.float32))
    assert mean.astype(np.float64) == 65536
    _, variance = called(call, np.array([-512.0, 512.0], np.float32))
    assert variance.astype(np.float64) == 65536


def test_rms_normalization_narrows_its_scale() -> None:
    """Under mixed_bfloat16 the layer rounds a float32 scale to 16 bits; the operation takes it as it is."""
    x, scale = np.array([[3.0, 1.0]], ml_dtypes.bfloat16), np.full(2, 1 + 2.0**-8 + 2.0**-16, np.float32)

    def layer(x, scale):
        made = keras.layers.RMSNormalization(epsilon=0.0, dtype="mixed_bfloat16")
        made.build((1, 2))
        made.scale.assign(scale)
        return made(x)

    (narrowed,) = called(layer, x, scale)
    (right,) = called(lambda x, scale: ops.rms_normalization(x, scale, epsilon=0.0), x, scale)
    # 3/sqrt(5) = 1.34164..., times 1.00392... = 1.34690..., in bfloat16 172 * 2^-7; times 1 + 2^-7, 173 * 2^-7.
    assert (right[0, 0], narrowed[0, 0]) == (172 / 128, 173 / 128)


# On PyTorch -----------------------------------------------------------------------------------------------


def _negative() -> tuple[np.ndarray, list[float]]:
    group = [40000.0, 40001.0]
    return np.array([group], np.float32).T, exact(group, 1e-3)


@on_torch
def test_the_variance_is_negative() -> None:
    """For 40000 and 40001 it is 1/4, and here below zero: BatchNormalization returns NaN for them, and keeps it."""
    x, right = _negative()
    np.testing.assert_allclose(right, [-0.9980059801, 0.9980059801], rtol=1e-9)
    (variance,) = called(lambda x: ops.moments(x, [0])[1], x)
    assert variance < 0

    def call(x):
        layer = keras.layers.BatchNormalization(epsilon=1e-3, momentum=0.0)
        return layer(x, training=True), layer.moving_variance.value

    y, moving = called(call, x)
    assert np.isnan(y).all()
    assert moving < 0


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch is the one that has it")
def test_elsewhere_the_variance_is_right() -> None:
    """TensorFlow and JAX form it from deviations."""
    x, right = _negative()
    (y,) = called(lambda x: keras.layers.BatchNormalization(epsilon=1e-3)(x, training=True), x)
    np.testing.assert_allclose(y[:, 0], right, rtol=1e-2)


@on_torch
@pytest.mark.parametrize("groups", [1, -1])
def test_the_variance_of_a_group_is_negative(groups: int) -> None:
    """GroupNormalization makes NaN of 40000 and 40001 too, in every sample."""
    x, _ = _negative()
    (y,) = called(lambda x: keras.layers.GroupNormalization(groups, epsilon=1e-3)(x), x.reshape(1, 2, 1))
    assert np.isnan(y).all()


@on_torch
def test_axes_that_are_not_the_last_are_taken_for_the_last() -> None:
    """Over axis 1 of three, the last is normalised where its size is the same; another size is an error."""

    def call(x):
        return ops.layer_normalization(x, axis=1, epsilon=0.5)

    x = np.array([[[0.0, 1.0], [4.0, 9.0]]])
    (y,) = called(call, x.astype(np.float32))
    by_row = np.array([[exact(row.tolist(), 0.5) for row in x[0]]])
    by_column = np.array([[exact(column.tolist(), 0.5) for column in x[0].T]]).transpose(0, 2, 1)
    np.testing.assert_allclose(y, by_row, rtol=1e-6)
    assert np.abs(y - by_column).max() > 0.1
    with pytest.raises(RuntimeError, match="normalized_shape"):
        called(call, np.zeros((1, 2, 3), np.float32))


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch is the one that has it")
def test_elsewhere_axes_are_those_named() -> None:
    """TensorFlow and JAX normalise over axis 1."""
    x = np.array([[[0.0, 1.0], [4.0, 9.0]]])
    (y,) = called(lambda x: ops.layer_normalization(x, axis=1, epsilon=0.5), x.astype(np.float32))
    by_column = np.array([[exact(column.tolist(), 0.5) for column in x[0].T]]).transpose(0, 2, 1)
    np.testing.assert_allclose(y, by_column, rtol=1e-6)


# On TensorFlow --------------------------------------------------------------------------------------------


@on_tensorflow
def test_addition_takes_a_column_for_a_bias() -> None:
    """For a square and a column, Add adds the column's numbers along the rows, not to them."""
    square, column = np.array([[0.0, 1.0], [2.0, 3.0]], np.float32), np.array([[10.0], [20.0]], np.float32)
    for add in (keras.layers.Add(), lambda both: ops.add(*both)):
        (y,) = called(lambda *both: add(list(both)), square, column)  # noqa: B023 - called at once
        np.testing.assert_array_equal(y, square + column.T)
    (y,) = called(lambda *both: ops.add(*both[::-1]), square, column)
    np.testing.assert_array_equal(y, square + column)


@on_tensorflow
def test_addition_of_empty_batches_raises() -> None:
    """Two tensors of shape (0, 4) are taken for a matrix and a bias, which has too many axes."""
    empty = np.zeros((0, 4), np.float32)
    with pytest.raises(Exception, match="Biases must be 1D"):
        called(lambda *both: keras.layers.Add()(list(both)), empty, empty)
    (y,) = called(lambda *both: keras.layers.Subtract()(list(both)), empty, empty)
    assert y.shape == (0, 4)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow is the one that has it")
def test_elsewhere_addition_broadcasts() -> None:
    """PyTorch and JAX add a column to each column, and empty batches to an empty batch."""
    square, column = np.array([[0.0, 1.0], [2.0, 3.0]], np.float32), np.array([[10.0], [20.0]], np.float32)
    (y,) = called(lambda *both: keras.layers.Add()(list(both)), square, column)
    np.testing.assert_array_equal(y, square + column)
    (y,) = called(lambda *both: keras.layers.Add()(list(both)), *[np.zeros((0, 4), np.float32)] * 2)
    assert y.shape == (0, 4)


# In the report --------------------------------------------------------------------------------------------

EXPECTED = [
    pytest.param(binding, entry, id=f"{entry.requirement} {binding.name}")
    for binding in target().bindings
    for entry in binding.known_violations
    if entry.always
]


@pytest.mark.parametrize(("binding", "entry"), EXPECTED)
def test_the_check_meets_it(binding, entry) -> None:
    """Each requirement that a binding is known to violate is violated, and reported so; undeclared it is a failure."""

    def found(**changes):
        # As slow as it may be: each requirement runs on all of its cases, few of which may show it.
        alone = replace(target(), bindings=(replace(binding, **changes),), slow=False)
        (dtype, *_) = entry.dtypes or ("float32",)
        (result,) = run(alone, dtypes=(dtype,), requirements={entry.requirement}).results
        return result

    assert found().verdict.value == "deviates"
    assert found().reason.startswith(entry.reason)
    assert found(known_violations=()).verdict.is_violation
