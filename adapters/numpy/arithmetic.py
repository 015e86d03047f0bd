"""The arithmetic of adapters/numpy: 16-bit data is computed in float32, other data in its own dtype."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

#: The dtype in which 16-bit data is computed.
_SINGLE = np.dtype(np.float32)


def widened(array: Array) -> Array:
    """The array in the dtype to compute in; the same array if it already has that dtype."""
    return array.astype(_SINGLE) if array.dtype.itemsize < _SINGLE.itemsize else array


def matmul(x: Array, w: Array) -> Array:
    """x @ w over the last axis of x, in x's dtype."""
    return (widened(x) @ widened(w)).astype(x.dtype)
