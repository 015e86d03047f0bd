"""Keras's tensors are those of its backend, which the environment names, once for a process."""

from __future__ import annotations

import os
import subprocess
import sys

import keras
import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.keras import BRIDGE, target
from normspec.adapters.keras.bridge import BACKEND
from normspec.spec.errors import DeviceUnavailable

BACKENDS = ("tensorflow", "torch", "jax")


def _process(backend: str, statement: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KERAS_BACKEND": backend}
    return subprocess.run([sys.executable, "-c", statement], env=environment, capture_output=True, text=True)


def test_the_backend_is_the_one_that_the_environment_names():
    """KERAS_BACKEND, which tox sets to each of the three, decides the target's name and the backend tested here."""
    assert os.environ.get("KERAS_BACKEND", BACKEND) == BACKEND == keras.backend.backend()
    assert BACKEND in BACKENDS
    assert (target().name, target().framework) == (f"keras[{BACKEND}]", "keras")
    assert (BRIDGE.name, BRIDGE.version, target().version) == ("keras", keras.__version__, keras.__version__)


def test_no_other_room_is_imported():
    """A process with one backend loads only that backend's room. (Keras itself imports JAX wherever it finds it.)"""
    done = _process(BACKEND, "import sys; import normspec.adapters.keras; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert f"normspec.adapters.{BACKEND}.bridge" in loaded, done.stderr
    for other in set(BACKENDS) - {BACKEND}:
        assert f"normspec.adapters.{other}" not in loaded


def test_a_backend_without_a_bridge_is_refused():
    """Keras's own NumPy backend, which cannot differentiate, is refused by name; the error lists the other three."""
    done = _process("numpy", "import normspec.adapters.keras")
    last = done.stderr.strip().splitlines()[-1]
    assert "FrameworkMissing: keras runs on numpy, which normspec does not drive" in last
    assert "set KERAS_BACKEND to tensorflow, torch, jax" in last


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_its_tensors_are_keras_own(dtype):
    """The bridge's tensors are Keras tensors, with the same dtype and values."""
    array = np.array([[1.5, -2.0, 0.25]], dtype)
    with BRIDGE.guarded(3, gradients=False):
        tensor = BRIDGE.tensor(array, "contiguous", "cpu")
        assert keras.ops.is_tensor(tensor)
        assert keras.backend.standardize_dtype(tensor.dtype) == array.dtype.name
        assert (BRIDGE.array(tensor, "y") == array).all()


def test_devices_are_named_in_the_backends_terms():
    """The CPU exists, and a device unknown to the backend is reported as such, with the backend's name."""
    BRIDGE.check_device("cpu")
    with pytest.raises(DeviceUnavailable, match=BACKEND):
        BRIDGE.check_device("nonsense")


@pytest.mark.skipif(BACKEND != "torch", reason="the other backends leave a tensor on its device")
def test_keras_is_told_the_device():
    """Unless told otherwise, Keras moves PyTorch's tensors to a device of its choice, here one that holds nothing."""
    tensor = BRIDGE.tensor(np.ones(3, np.float32), "contiguous", "cpu")
    with keras.device("meta"):
        assert keras.ops.convert_to_tensor(tensor).device.type == "meta"
        with BRIDGE.guarded(3, gradients=False):
            assert keras.ops.convert_to_tensor(tensor).device.type == "cpu"
        assert keras.ops.convert_to_tensor(tensor).device.type == "meta"
