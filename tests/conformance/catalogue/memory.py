"""Memory as a kernel sees it: an address, and values one after the other."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def storage(x: Array) -> tuple[Array, int]:
    """An array's whole memory as one line, and the position of the array's first value in it."""
    base, owner = x, x
    while owner is not None:
        owner = getattr(owner, "base", None)  # as_strided's results have an owner that is no array
        if isinstance(owner, np.ndarray):
            base = owner
    if not (base.flags.c_contiguous or base.flags.f_contiguous):
        return x.reshape(-1), 0
    line = base.reshape(-1, order="C" if base.flags.c_contiguous else "F")
    if line.dtype != x.dtype:
        line = line.view(x.dtype)
    return line, (x.__array_interface__["data"][0] - line.__array_interface__["data"][0]) // x.dtype.itemsize


def packed(x: Array, at: int, shape: tuple[int, ...]) -> Array:
    """The values from a position in x's memory on, to fill this shape; beyond its end, it starts over."""
    line, first = storage(x)
    count = int(np.prod(shape))
    if not line.size:
        return np.zeros(shape, x.dtype)
    return line[(first + at + np.arange(count)) % line.size].reshape(shape)


def as_if_contiguous(x: Array) -> Array:
    """The values read from x's address on, without its strides."""
    return packed(x, 0, x.shape)


def without_offset(x: Array) -> Array:
    """The values read from the beginning of x's memory, with x's strides if these are those of a contiguous array."""
    line, first = storage(x)
    return packed(x, -first, x.shape) if x.flags.c_contiguous and line.size else x
