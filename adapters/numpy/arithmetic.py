"""The arithmetic of adapters/numpy: 16-bit data is computed in float32, other data in its own dtype."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

#: The dtype in which 16-bit data is computed.
_SINGLE = np.dtype(np.float32)


def widened(array: Array) -> Array:
    """The array in the dtype to compute in; the same array if it already has that dtype."""
    return array.astype(_SINGLE) if array.dtype.itemsize < _SINGLE.itemsize else array


def summed(left: Array, right: Array) -> Array:
    """The sum, in new memory and in the dtype to compute in."""
    return widened(left) + widened(right)


def shifted(x: Array, offset: int, axis: int) -> Array:
    """result[t] = x[t + offset] along the axis, zero beyond the ends."""
    size = x.shape[axis]
    lost = min(abs(offset), size)
    result = np.zeros(x.shape, x.dtype)
    source, place = np.moveaxis(x, axis, 0), np.moveaxis(result, axis, 0)
    if offset >= 0:
        place[: size - lost] = source[lost:]
    else:
        place[lost:] = source[: size - lost]
    return result
