"""PyTorch tensors, devices and derivatives."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest
import torch

from normspec.adapters.layouts import place
from normspec.adapters.torch import BRIDGE
from normspec.adapters.traits import measured
from normspec.spec.errors import BadOutput, DeviceUnavailable, LayoutNotApplicable

DTYPES = {
    np.float16: torch.float16,
    ml_dtypes.bfloat16: torch.bfloat16,
    np.float32: torch.float32,
    np.float64: torch.float64,
}


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize(("dtype", "expected"), DTYPES.items())
def test_every_bit_survives(layout, dtype, expected):
    """All 65,536 patterns of 16 bits, and as many of the wider ones, go there and back unchanged, NaNs included."""
    size = np.dtype(dtype).itemsize
    bits = np.arange(1 << 16, dtype=f"u{size}") << (8 * (size - 2))
    tensor = BRIDGE.tensor(bits.view(dtype), layout, "cpu")
    assert tensor.dtype is expected
    assert (BRIDGE.array(tensor, "y").view(bits.dtype) == bits).all()


@pytest.mark.parametrize("layout", BRIDGE.layouts)
@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_are_those_of_the_plan(layout, dtype):
    """Each layout has the strides that NumPy's plan promises, and the same values."""
    array = np.arange(120).reshape(2, 3, 4, 5).astype(dtype)
    if layout == "zero_stride":
        array = np.repeat(array[:1], 3, axis=0)
    tensor = BRIDGE.tensor(array, layout, "cpu")
    plan = place(array, layout)
    assert tensor.stride() == plan.strides
    assert tensor.storage_offset() == plan.offset
    assert (BRIDGE.array(tensor, "x") == array).all()


def test_channels_last_is_torchs_own():
    """The channels_last layout is what PyTorch calls so."""
    tensor = BRIDGE.tensor(np.zeros((2, 3, 4, 5)), "channels_last", "cpu")
    assert tensor.is_contiguous(memory_format=torch.channels_last)


def test_negative_strides_do_not_exist():
    """PyTorch has no negative strides, and the bridge does not offer them."""
    assert "negative" not in BRIDGE.layouts
    with pytest.raises(LayoutNotApplicable, match="torch has no layout 'negative'"):
        BRIDGE.tensor(np.zeros(3), "negative", "cpu")


def test_read_only_arrays_are_taken():
    """An array that may not be written to is copied like any other."""
    array = np.zeros(3)
    array.flags.writeable = False
    BRIDGE.tensor(array, "contiguous", "cpu").add_(1)
    assert not array.any()


def test_reading_copies():
    """An array that was read does not change with the tensor."""
    tensor = torch.zeros(3)
    array = BRIDGE.array(tensor, "y")
    tensor.add_(1)
    assert not array.any()


@pytest.mark.parametrize(
    ("value", "message", "kind"),
    [
        (None, "y is None, not a torch.Tensor", "type"),
        (np.zeros(3), "y is ndarray", "type"),
        (1.0, "y is float", "type"),
        (torch.zeros(3, dtype=torch.int64), "y has dtype int64", "dtype"),
        (torch.zeros(3, dtype=torch.complex64), "y has dtype complex64", "dtype"),
        (torch.zeros(3, dtype=torch.float8_e5m2), "y has dtype float8_e5m2", "dtype"),
        (torch.zeros(3, 3).to_sparse(), "not a dense tensor, but of layout torch.sparse_coo", "type"),
        (torch.zeros(3, device="meta"), "y is on device meta", "type"),
    ],
)
def test_what_is_no_tensor_of_floats(value, message, kind):
    """A result of the wrong type, dtype, layout or device is reported as what it is."""
    with pytest.raises(BadOutput, match=message) as caught:
        BRIDGE.array(value, "y")
    assert caught.value.kind == kind


def test_every_kind_of_dense_tensor_is_read():
    """Tracked, conjugated and inference tensors, parameters and scalars are all read."""
    with torch.inference_mode():
        inferred = torch.ones(2, dtype=torch.bfloat16)
    negative = torch.imag(torch.complex(torch.ones(2), torch.ones(2)).conj())
    assert (BRIDGE.array(inferred, "y") == 1).all()
    assert (BRIDGE.array(negative, "y") == -1).all()
    assert (BRIDGE.array(torch.nn.Parameter(torch.ones(2)), "y") == 1).all()
    assert BRIDGE.array(torch.tensor(1.0, dtype=torch.bfloat16), "y").shape == ()


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "torch knows no device 'gpu': use cpu, cuda or cuda:N"),
        ("cuda:x", "torch knows no device"),
        ("meta", "does not drive torch's device 'meta'"),
        ("cpu:0", "write cpu in place of 'cpu:0'"),
    ],
)
def test_devices_that_do_not_exist(device, message):
    """A device that PyTorch does not know, or the bridge does not drive, is refused."""
    with pytest.raises(DeviceUnavailable, match=message):
        BRIDGE.check_device(device)


def test_cuda_without_cuda(monkeypatch):
    """Without a GPU the message says what is missing and what to do."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceUnavailable, match=r"device 'cuda:0': torch .* install a CUDA build.*--device cpu"):
        BRIDGE.check_device("cuda:0")


def test_cuda_beyond_the_last(monkeypatch):
    """An index beyond the last GPU is reported with the last one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    BRIDGE.check_device("cuda")
    BRIDGE.check_device("cuda:1")
    with pytest.raises(DeviceUnavailable, match="finds 2, the last being cuda:1"):
        BRIDGE.check_device("cuda:2")


@pytest.mark.parametrize("gradients", [True, False])
def test_the_surroundings_are_put_back(gradients):
    """Gradient mode and threads are set for a call and restored afterwards, whatever the target did."""
    threads, mode = torch.get_num_threads(), torch.is_grad_enabled()
    with pytest.raises(ValueError, match="out"), BRIDGE.guarded(10, gradients=gradients):
        assert torch.is_grad_enabled() is gradients
        assert torch.get_num_threads() == 1
        torch.set_grad_enabled(not gradients)
        raise ValueError("out")
    assert torch.is_grad_enabled() is mode
    assert torch.get_num_threads() == threads
    with BRIDGE.guarded(1 << 20, gradients=gradients):  # two at least, where there are two cores
        assert torch.get_num_threads() == max(threads, min(2, os.cpu_count() or 1))


def test_subnormal_numbers_are_kept_unless_the_process_flushes_them():
    """PyTorch keeps them; a program that has called torch.set_flush_denormal is measured to lose them."""
    assert measured(BRIDGE, "cpu") == ()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush")
    try:
        assert {trait.dtype for trait in measured(BRIDGE, "cpu")} >= {"float32", "float64"}
    finally:
        torch.set_flush_denormal(False)
