"""
Known violations of PyTorch's batch_norm on the CPU: an x whose strides do not say in which order it lies in memory.

The stride of an axis of one element is arbitrary, and a transpose leaves another one there than `channels_last` has.
`is_contiguous(channels_last)` is then true of x, and `suggest_memory_format` is the contiguous one. The backward pass
compares the latter of x with that of the cotangent, and passes a contiguous cotangent on. The kernel looks at the
former, and reads the cotangent as if its channels lay last in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..known import Failure, KnownViolation, Predicted
from ..layouts import LAYOUTS, place, why_not
from .bridge import SOURCE
from .misread_cotangent import comes_of

#: By the number of axes: from the slowest to the fastest axis in memory, if the channels lie last.
_CHANNELS_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def _lies_in(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    """Whether the axes lie in this order without gaps; the stride of an axis of one element does not count."""
    step = 1
    for axis in reversed(order):
        if shape[axis] != 1:
            if strides[axis] != step:
                return False
            step *= shape[axis]
    return True


def _suggests_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """`suggest_memory_format` of PyTorch (c10/core/MemoryFormat.h), which looks at every stride."""
    least = 0
    if strides[1] == 0:
        return False
    for axis in reversed(_CHANNELS_LAST[len(shape)]):
        if shape[axis] == 0 or strides[axis] < least or (axis == 0 and least == strides[1]):
            return False
        least = strides[axis] * max(shape[axis], 1)
    return True


def _is_ambiguous(x: np.ndarray) -> bool:
    """Whether x, with its channels on axis 1, has its channels last in memory, and PyTorch suggests another format."""
    strides = [step // x.itemsize for step in x.strides]
    order = _CHANNELS_LAST[x.ndim]
    last = _lies_in(x.shape, strides, order) and not _lies_in(x.shape, strides, range(x.ndim))
    return last and not _suggests_channels_last(x.shape, strides)


def _has_an_axis_of_one(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether there is one sample, or one position along an axis, with several channels on axis 1."""
    shape = inputs["x"].shape
    return settings["channel_axis"] % len(shape) == 1 and shape[1] > 1 and 1 in shape


def _misread(failure: Failure) -> Predicted:
    """Whether each element comes from reading a contiguous cotangent as if its channels lay last in memory."""
    assert failure.g is not None
    layout = failure.note.partition(",")[0][len("x ") :]
    x, g = np.asarray(failure.inputs["x"]), np.asarray(failure.g, np.float64)
    if layout not in LAYOUTS or why_not(x, layout) is not None or not _is_ambiguous(place(x, layout).view()):
        return False
    return comes_of(failure, g.reshape(-1, g.shape[1]).T)


AMBIGUOUS_ON_CPU = KnownViolation(
    "CM-V1",
    "the backward pass reads a contiguous cotangent as if its channels lay last in memory, because those of x do,"
    " although the strides of an axis of one element say otherwise",
    links=(f"{SOURCE}aten/src/ATen/native/Normalization.cpp (batch_norm_backward_cpu)",),
    failures=("value", "infinite", "nan"),
    outputs=("dx", "dgamma", "dbeta"),
    devices=("cpu",),
    ranks=(4, 5),
    notes=("x transposed", "x leading_transposed", "x middle_transposed"),
    where="one sample, or one position along an axis",
    cases=_has_an_axis_of_one,
    predicts=_misread,
    always=False,  # few cases have such an axis
)
