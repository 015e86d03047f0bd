"""
Layouts: ways in which the same values can lie in memory.

A layout is planned in NumPy as a flat buffer with a shape, strides and an offset, counted in elements. A bridge whose
framework has strided views can then make the same view of the same buffer. The buffer is NaN outside the view, so that
an implementation that reads there is caught.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..spec.errors import LayoutNotApplicable, choices

#: Every layout; "negative" needs negative strides, which some frameworks lack.
LAYOUTS: tuple[str, ...] = (
    "contiguous",
    "transposed",
    "leading_transposed",
    "middle_transposed",
    "strided",
    "sliced_last_axis",
    "sliced_second_axis",
    "offset",
    "offset_by_16_bytes",
    "channels_last",
    "channels_last_sliced",
    "zero_stride",
    "negative",
)

#: Distance between neighbours of the strided layout, in elements; 2 is the smallest that leaves gaps.
_STEP = 2

#: Elements before the view of the layout "offset": odd, so that no vector load of two or more elements is aligned.
_OFFSET = 1

#: Bytes before the view of the other offset layout: whoever has made sure of loads of 16 bytes may use wider ones,
#: which are not aligned there.
_OFFSET_BYTES = 16

#: Elements after the view of the offset layouts, to show a read past the end.
_TAIL = 7


@dataclass(frozen=True)
class Placement:
    """One array laid out in memory: a view of a flat buffer."""

    #: A flat array that nothing else uses; NaN outside the view.
    buffer: np.ndarray
    shape: tuple[int, ...]
    #: In elements, not in bytes.
    strides: tuple[int, ...]
    #: In elements.
    offset: int

    def view(self) -> np.ndarray:
        """The array, as a view of the buffer."""
        size = self.buffer.itemsize
        return np.lib.stride_tricks.as_strided(
            self.buffer[self.offset :], self.shape, tuple(stride * size for stride in self.strides)
        )


def why_not(array: np.ndarray, layout: str) -> str | None:
    """Why the array cannot have this layout; None if it can. Raises LayoutNotApplicable for an unknown layout."""
    if layout not in LAYOUTS:
        raise LayoutNotApplicable(f"unknown layout {layout!r}{choices(layout, LAYOUTS)}")
    if layout == "transposed" and array.ndim < 2:
        return "reversing the axes in memory needs at least two axes"
    if layout == "leading_transposed" and array.ndim < 3:
        return "reversing the axes before the last needs at least two of them"
    if layout == "middle_transposed" and array.ndim < 4:
        return "exchanging the second and third of several axes needs at least four"
    if layout in ("channels_last", "channels_last_sliced") and array.ndim < 3:
        return "channels_last needs a batch axis, a channel axis and at least one more"
    if layout == "sliced_last_axis" and array.ndim < 2:
        return "a slice of the last axis has gaps where there are at least two axes"
    if layout == "sliced_second_axis" and array.ndim < 3:
        return "a slice of the second axis is another layout than one of the last where there are at least three axes"
    if layout == "zero_stride" and not _constant_axes(array):
        return "zero_stride needs an axis of at least two elements along which the values do not change"
    return None


def fitting(array: np.ndarray, layout: str) -> str:
    """The layout if the array can have it, else "contiguous"."""
    return layout if why_not(array, layout) is None else "contiguous"


def place(array: np.ndarray, layout: str) -> Placement:
    """
    Put the array's values into a new buffer in this layout.

    Raises LayoutNotApplicable if :func:`why_not` gives a reason.
    """
    reason = why_not(array, layout)
    if reason is not None:
        raise LayoutNotApplicable(reason)
    shape, size = array.shape, array.size
    dense = _dense_strides(shape, range(array.ndim))
    if layout == "zero_stride":
        return _place_zero_stride(array)
    if layout == "transposed":
        length, strides, offset = size, _dense_strides(shape, range(array.ndim - 1, -1, -1)), 0
    elif layout == "leading_transposed":
        length, strides, offset = size, _dense_strides(shape, (*range(array.ndim - 2, -1, -1), array.ndim - 1)), 0
    elif layout == "middle_transposed":  # the heads of attention, and the positions of a sequence
        length, strides, offset = size, _dense_strides(shape, (0, 2, 1, *range(3, array.ndim))), 0
    elif layout == "channels_last":
        length, strides, offset = size, _dense_strides(shape, (0, *range(2, array.ndim), 1)), 0
    elif layout == "channels_last_sliced":  # some of the channels of images: the stride of channels is 1 here too
        whole = (shape[0], 2 * shape[1], *shape[2:])
        length, strides, offset = math.prod(whole), _dense_strides(whole, (0, *range(2, array.ndim), 1)), 0
    elif layout == "strided":
        length, strides, offset = size * _STEP, tuple(stride * _STEP for stride in dense), 0
    elif layout in ("sliced_last_axis", "sliced_second_axis"):
        axis = 1 if layout == "sliced_second_axis" else array.ndim - 1
        whole = tuple(length * (1 + (place == axis)) for place, length in enumerate(shape))
        length, strides, offset = math.prod(whole), _dense_strides(whole, range(array.ndim)), 0
    elif layout in ("offset", "offset_by_16_bytes"):
        offset = _OFFSET if layout == "offset" else _OFFSET_BYTES // array.itemsize
        length, strides = offset + size + _TAIL, dense
    elif layout == "negative":
        length, strides, offset = size, tuple(-stride for stride in dense), max(size - 1, 0)
    else:
        length, strides, offset = size, dense, 0
    # At least one element, because the offset must point at an element even if the size is zero.
    buffer = np.full(max(length, 1), np.nan, array.dtype)
    placement = Placement(buffer, shape, strides, offset)
    placement.view()[...] = array
    return placement


def _place_zero_stride(array: np.ndarray) -> Placement:
    constant = _constant_axes(array)
    small = array[tuple(slice(0, 1) if axis in constant else slice(None) for axis in range(array.ndim))]
    strides = tuple(
        0 if axis in constant else stride for axis, stride in enumerate(_dense_strides(small.shape, range(small.ndim)))
    )
    # Code that takes it for contiguous reads as many elements as the array has.
    buffer = np.full(array.size, np.nan, array.dtype)
    buffer[: small.size] = small.reshape(-1)
    return Placement(buffer, array.shape, strides, 0)


def _dense_strides(shape: tuple[int, ...], order) -> tuple[int, ...]:
    """Strides, in elements, of a dense array whose axes lie in memory in this order, the last one fastest."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(tuple(order)):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def _constant_axes(array: np.ndarray) -> tuple[int, ...]:
    """The axes with two or more elements along which the values are equal, bit for bit."""
    if math.prod(array.shape) == 0:
        return ()
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    constant = []
    for axis, length in enumerate(array.shape):
        if length > 1 and bool((bits == bits[(slice(None),) * axis + (slice(0, 1),)]).all()):
            constant.append(axis)
    return tuple(constant)
