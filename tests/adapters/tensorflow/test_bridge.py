"""TensorFlow tensors and devices."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from normspec.adapters.tensorflow import BRIDGE
from normspec.spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable

DTYPES = {
    np.float16: tf.float16,
    ml_dtypes.bfloat16: tf.bfloat16,
    np.float32: tf.float32,
    np.float64: tf.float64,
}


@pytest.mark.parametrize(("dtype", "expected"), DTYPES.items())
def test_every_bit_survives(dtype, expected):
    """All 65,536 patterns of 16 bits, and as many of the wider ones, go there and back unchanged, NaNs included."""
    size = np.dtype(dtype).itemsize
    bits = np.arange(1 << 16, dtype=f"u{size}") << (8 * (size - 2))
    tensor = BRIDGE.tensor(bits.view(dtype), "contiguous", "cpu")
    assert tensor.dtype is expected
    assert BRIDGE.describe(tensor) == ((1 << 16,), np.dtype(dtype).name)
    assert (BRIDGE.array(tensor, "y").view(bits.dtype) == bits).all()


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 3, 4)])
def test_every_shape_survives(shape):
    """Scalars, empty arrays and arrays of any rank come back in their shape."""
    tensor = BRIDGE.tensor(np.ones(shape, np.float32), "contiguous", "cpu")
    assert BRIDGE.array(tensor, "y").shape == BRIDGE.describe(tensor)[0] == shape


def test_a_tensor_has_no_strides():
    """The only layout is the contiguous one."""
    assert BRIDGE.layouts == ("contiguous",)
    with pytest.raises(LayoutNotApplicable, match="tensorflow has no layout 'strided'"):
        BRIDGE.tensor(np.zeros(3), "strided", "cpu")


def test_nothing_is_shared_with_an_array():
    """A tensor does not change with the array it was made from, nor an array that was read with the tensor's memory."""
    array = np.zeros(64, np.float32)
    tensor = BRIDGE.tensor(array, "contiguous", "cpu")
    array += 1
    assert not tensor.numpy().any()
    read = BRIDGE.array(tensor, "y")
    read += 1
    assert not tensor.numpy().any()


def _symbolic():
    leaked = []
    tf.function(lambda: leaked.append(tf.zeros(3)))()
    return leaked[0]


@pytest.mark.parametrize(
    ("value", "message", "kind"),
    [
        (None, "y is None, not a tf.Tensor", "type"),
        (np.zeros(3), "y is ndarray", "type"),
        (1.0, "y is float", "type"),
        (tf.constant([1, 2]), "y has dtype int32", "dtype"),
        (tf.constant([1j]), "y has dtype complex128", "dtype"),
        (tf.constant("1"), "y has dtype string", "dtype"),
        (tf.IndexedSlices(tf.ones((1, 3)), tf.constant([0])), "y is IndexedSlices", "type"),
        (tf.sparse.from_dense([1.0, 0.0]), "y is SparseTensor", "type"),
        (tf.ragged.constant([[1.0], [2.0, 3.0]]), "y is RaggedTensor", "type"),
        (_symbolic(), "y is a symbolic tf.Tensor", "type"),
    ],
)
def test_what_is_no_tensor_of_floats(value, message, kind):
    """A result of the wrong type or dtype, or one that has no value, is reported as what it is."""
    with pytest.raises(BadOutput, match=message) as caught:
        BRIDGE.array(value, "y")
    assert caught.value.kind == kind


def test_a_variable_is_read_as_it_is_now():
    """A tf.Variable passes for a tensor, and its value is that of the moment."""
    variable = tf.Variable([1.0, 2.0])
    assert BRIDGE.describe(variable) == ((2,), "float32")
    assert (BRIDGE.array(variable, "y") == [1, 2]).all()
    variable.assign([3.0, 4.0])
    assert (BRIDGE.array(variable, "y") == [3, 4]).all()


@pytest.mark.parametrize("device", ["cpu", "CPU", "/CPU:0", "cpu:0", "/device:CPU:0"])
def test_the_cpu_in_tensorflows_own_terms(device):
    """The CPU goes by each of the names that TensorFlow has for it."""
    BRIDGE.check_device(device)
    assert BRIDGE.tensor(np.zeros(2), "contiguous", device).device.endswith("CPU:0")
    BRIDGE.synchronise(device)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "tpu", "gpu0", "/GPU:x", "", "cpu:"])
def test_devices_that_do_not_exist(device):
    """A device that TensorFlow does not know, or the bridge does not drive, is refused."""
    with pytest.raises(DeviceUnavailable, match=r"tensorflow knows no device .*: use cpu, /CPU:0, gpu, /GPU:0"):
        BRIDGE.check_device(device)


def _with_gpus(monkeypatch, count):
    devices = {"CPU": ["cpu"], "GPU": ["gpu"] * count}
    monkeypatch.setattr(tf.config, "list_physical_devices", devices.get)


@pytest.mark.parametrize("device", ["gpu", "GPU", "/GPU:0", "gpu:1", "/device:GPU:1"])
def test_a_gpu_without_one(monkeypatch, device):
    """Without a GPU the message says what is missing and what to do."""
    _with_gpus(monkeypatch, 0)
    assert BRIDGE.devices() == ("cpu",)
    with pytest.raises(
        DeviceUnavailable, match=r"tensorflow .*(GPU|CUDA).*install tensorflow\[and-cuda\].*--device cpu"
    ):
        BRIDGE.check_device(device)


def test_a_gpu_beyond_the_last(monkeypatch):
    """An index beyond the last GPU is reported with the last one."""
    _with_gpus(monkeypatch, 2)
    assert BRIDGE.devices() == ("cpu", "/GPU:0", "/GPU:1")
    BRIDGE.check_device("gpu")
    BRIDGE.check_device("/GPU:1")
    with pytest.raises(DeviceUnavailable, match="finds 2, the last being /GPU:1"):
        BRIDGE.check_device("GPU:2")


def test_the_surroundings_are_put_back():
    """The logger, the device and the tape are set for a call and restored afterwards, whatever is raised."""
    logger = tf.get_logger()
    level, disabled = logger.level, logger.disabled
    x = BRIDGE.tensor(np.ones(2), "contiguous", "cpu", tracked=True)
    with pytest.raises(ValueError, match="out"), BRIDGE.guarded(2, gradients=True):
        assert logger.disabled
        raise ValueError("out")
    assert (logger.level, logger.disabled) == (level, disabled)
    with tf.GradientTape() as outside:
        y = x * x
    assert outside.gradient(y, x) is None
