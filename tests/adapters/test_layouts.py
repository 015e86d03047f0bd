"""Layouts in memory, planned in NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normspec.adapters.layouts import LAYOUTS, place, why_not
from normspec.spec.errors import LayoutNotApplicable


def _array(shape, dtype=np.float32):
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "zero_stride"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_values_are_those_given(layout, dtype):
    """In any layout, the view has the array's values, shape and dtype."""
    array = _array((2, 3, 4, 5), dtype)
    view = place(array, layout).view()
    assert view.shape == array.shape
    assert view.dtype == array.dtype
    assert (view == array).all()
    assert not np.shares_memory(view, array)


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        ("contiguous", (60, 20, 5, 1)),
        ("transposed", (1, 2, 6, 24)),
        ("leading_transposed", (5, 10, 30, 1)),
        ("middle_transposed", (60, 5, 15, 1)),
        ("strided", (120, 40, 10, 2)),
        ("sliced_last_axis", (120, 40, 10, 1)),
        ("sliced_second_axis", (120, 20, 5, 1)),
        ("offset", (60, 20, 5, 1)),
        ("offset_by_16_bytes", (60, 20, 5, 1)),
        ("channels_last", (60, 1, 15, 3)),
        ("channels_last_sliced", (120, 1, 30, 6)),
        ("negative", (-60, -20, -5, -1)),
    ],
)
def test_strides_are_those_promised(layout, strides):
    """Each layout has the strides that its name says, in elements."""
    placement = place(_array((2, 3, 4, 5)), layout)
    assert placement.strides == strides
    assert placement.view().strides == tuple(4 * stride for stride in strides)


def test_offset_view_starts_inside_its_buffer():
    """The offset view begins one element into the buffer, which ends later than it does."""
    placement = place(_array((2, 3)), "offset")
    assert placement.offset == 1
    assert placement.buffer.size > 1 + 6
    assert np.isnan(placement.buffer[[0, 7]]).all()


@pytest.mark.parametrize(("dtype", "elements"), [("float16", 8), ("float32", 4), ("float64", 2)])
def test_the_other_offset_is_in_bytes(dtype, elements):
    """The view offset by 16 bytes begins as many bytes into the buffer in each dtype."""
    assert place(_array((2, 3), dtype), "offset_by_16_bytes").offset == elements


def test_gaps_hold_nan():
    """Between the elements of the strided layout there is NaN."""
    placement = place(_array((2, 3)), "strided")
    assert np.isnan(placement.buffer[1::2]).all()
    assert not np.isnan(placement.buffer[::2]).any()


def test_zero_stride_repeats_one_element():
    """An axis along which nothing changes is stored once."""
    array = np.repeat(_array((1, 3, 1)), 4, axis=0)
    placement = place(array, "zero_stride")
    assert placement.strides[0] == 0
    assert (placement.view() == array).all()
    assert (placement.buffer[:3] == array[0, :, 0]).all()
    assert np.isnan(placement.buffer[3:]).all()  # what code that takes it for contiguous reads next
    assert placement.buffer.size == array.size


def test_zero_stride_tells_minus_zero_from_zero():
    """Constant means the same bits: an array of both zeros is not."""
    assert why_not(np.array([0.0, -0.0]), "zero_stride") is not None
    assert why_not(np.array([np.nan, np.nan]), "zero_stride") is None


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "zero_stride"])
@pytest.mark.parametrize("shape", [(0, 3, 2, 2), (2, 0, 3, 1), (1, 1, 1, 1)])
def test_empty_and_single_arrays_have_every_layout(layout, shape):
    """No layout fails for want of elements."""
    assert place(_array(shape), layout).view().shape == shape


@pytest.mark.parametrize(
    ("shape", "layout", "message"),
    [
        ((3,), "transposed", "at least two axes"),
        ((3, 2), "leading_transposed", "at least two of them"),
        ((3, 2, 2), "middle_transposed", "at least four"),
        ((3,), "sliced_last_axis", "at least two axes"),
        ((3, 2), "sliced_second_axis", "at least three axes"),
        ((3, 2), "channels_last", "at least one more"),
        ((3, 2), "channels_last_sliced", "at least one more"),
        ((3, 2), "zero_stride", "do not change"),
        ((0, 2), "zero_stride", "do not change"),
        ((3, 2), "transpose", "did you mean 'transposed'"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(shape, layout, message):
    """A layout that the array does not have is refused with the reason."""
    with pytest.raises(LayoutNotApplicable, match=message):
        place(_array(shape), layout)


def test_source_may_have_any_layout():
    """The array given may itself be a view."""
    array = _array((3, 4))[::-1].T
    assert (place(array, "strided").view() == array).all()
    assert (place(array, "contiguous").view() == array).all()
