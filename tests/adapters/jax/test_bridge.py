"""JAX arrays, devices, and the surroundings of a call."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.jax import BRIDGE
from normspec.adapters.jax.bridge import JaxBridge
from normspec.adapters.traits import measured
from normspec.spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bit_survives(dtype):
    """All 65,536 patterns of 16 bits, and as many of the wider ones, go there and back unchanged, NaNs included."""
    size = np.dtype(dtype).itemsize
    bits = np.arange(1 << 16, dtype=f"u{size}") << (8 * (size - 2))
    tensor = BRIDGE.tensor(bits.view(dtype), "contiguous", "cpu")
    assert tensor.dtype == dtype
    assert BRIDGE.describe(tensor) == ((1 << 16,), np.dtype(dtype).name)
    assert (BRIDGE.array(tensor, "y").view(bits.dtype) == bits).all()


def test_arrays_have_one_layout():
    """XLA decides how an array lies in memory, so none of the strided layouts exists."""
    assert BRIDGE.layouts == ("contiguous",)
    with pytest.raises(LayoutNotApplicable, match="jax has no layout 'strided'"):
        BRIDGE.tensor(np.zeros(3), "strided", "cpu")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_has_memory_of_its_own(dtype):
    """A tensor does not change with the array from which it was made, whatever that array's alignment."""
    array = np.zeros(4096, dtype)
    tensor = BRIDGE.tensor(array, "contiguous", "cpu")
    array += np.ones((), dtype)
    assert not BRIDGE.array(tensor, "x").any()


def test_reading_copies():
    """An array that was read may be written to; the tensor stays."""
    tensor = BRIDGE.tensor(np.zeros(3), "contiguous", "cpu")
    BRIDGE.array(tensor, "y")[...] = 1
    assert not BRIDGE.array(tensor, "y").any()


@pytest.mark.parametrize(
    ("value", "message", "kind"),
    [
        (None, "y is None, not a jax.Array", "type"),
        (np.zeros(3), "y is ndarray, not a jax.Array", "type"),
        (1.0, "y is float", "type"),
        ([jnp.zeros(3)], "y is list", "type"),
        (jnp.zeros(3, jnp.int32), "y has dtype int32", "dtype"),
        (jnp.zeros(3, jnp.complex64), "y has dtype complex64", "dtype"),
        (jnp.zeros(3, jnp.float8_e5m2), "y has dtype float8_e5m2", "dtype"),
        (jax.random.key(0), r"y has dtype key<fry>", "dtype"),
    ],
)
def test_what_is_no_tensor_of_floats(value, message, kind):
    """A result of the wrong type or dtype is reported as what it is."""
    with pytest.raises(BadOutput, match=message) as caught:
        BRIDGE.array(value, "y")
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("GPU", "jax knows no device 'GPU': use cpu, gpu, gpu:N, cuda, rocm or tpu"),
        ("/GPU:0", "jax knows no device"),
        ("gpu:x", "jax knows no device"),
        ("cpu:-1", "jax knows no device"),
        ("", "jax knows no device"),
        ("cpu:7", "device 'cpu:7': jax finds 1, the last being cpu:0"),
    ],
)
def test_devices_that_do_not_exist(device, message):
    """A device that JAX does not know is refused with those it does."""
    with pytest.raises(DeviceUnavailable, match=message):
        BRIDGE.check_device(device)


@pytest.mark.parametrize("device", ["gpu", "gpu:1", "cuda", "cuda:0", "rocm", "tpu"])
def test_a_platform_that_is_not_there(device):
    """If JAX finds no such platform, the message says so and what to do."""
    platform = device.partition(":")[0]
    try:
        found = jax.devices(platform)
    except RuntimeError:
        with pytest.raises(DeviceUnavailable, match=rf"{device!r}: jax .* finds no {platform}; .*--device cpu"):
            BRIDGE.check_device(device)
    else:
        assert found
        BRIDGE.check_device(platform)


def test_the_devices_that_there_are():
    """Every device that the bridge names can be used, the CPU first."""
    names = BRIDGE.devices()
    assert names[0] == "cpu"
    for name in names:
        BRIDGE.check_device(name)
        tensor = BRIDGE.tensor(np.ones(2), "contiguous", name)
        with BRIDGE.guarded(2, gradients=False):
            assert (tensor + jnp.ones(2)).devices() == tensor.devices()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_as_wide_as_in_a_users_program(dtype):
    """float64 data is met with x64 enabled, narrower data without, and the process's setting is back afterwards."""
    before = jax.config.jax_enable_x64
    tensor = BRIDGE.tensor(np.ones(2, dtype), "contiguous", "cpu")
    with pytest.raises(ValueError, match="out"), BRIDGE.guarded(2, gradients=True):
        assert jnp.zeros(2).dtype == dtype
        assert (tensor * jnp.ones(2)).dtype == dtype
        warnings.warn("nobody is to see this", stacklevel=1)
        raise ValueError("out")
    assert jax.config.jax_enable_x64 is before
    assert jnp.zeros(2).dtype == (np.float64 if before else np.float32)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_users_own_setting_does_not_matter(enabled):
    """float64 stays float64, and float32 float32, whether the program has enabled x64 or not."""
    with jax.enable_x64(enabled):
        for dtype in (np.float64, np.float32):
            tensor = BRIDGE.tensor(np.ones(2, dtype), "contiguous", "cpu")
            with BRIDGE.guarded(2, gradients=True):
                assert jnp.sin(tensor).dtype == dtype
        assert jax.config.jax_enable_x64 is enabled


def test_subnormal_numbers_are_flushed():
    """XLA on the CPU flushes them in every dtype except float16, whose subnormals are normal numbers of float32."""
    found = measured(BRIDGE, "cpu")
    assert {trait.dtype for trait in found} == {"bfloat16", "float32", "float64"}
    assert {(trait.key, trait.value) for trait in found} == {("subnormals", "flushed")}


def test_programs_are_freed_when_there_are_many(monkeypatch):
    """Each shape is a program: before the next call they are freed, not within one, and results stay the same."""
    bridge, freed = JaxBridge(), []
    monkeypatch.setattr("normspec.adapters.jax.bridge.MOST_PROGRAMS", 3)
    monkeypatch.setattr(jax, "clear_caches", lambda: freed.append(1))
    double = bridge.compiled(lambda x: 2 * x)
    for n in range(1, 10):
        x = bridge.tensor(np.ones(n, np.float32), "contiguous", "cpu")
        with bridge.guarded(n, gradients=False):
            before = len(freed)
            assert bridge.array(double(x), "y").tolist() == [2] * n
            with bridge.guarded(n, gradients=False):
                assert len(freed) == before
    assert len(freed) == 2
