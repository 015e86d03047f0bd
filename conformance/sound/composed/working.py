"""Other dtypes to compute in: float64 throughout, and, under a declaration, 16-bit data in its own dtype."""

from __future__ import annotations

import numpy as np

from ....adapters.numpy.operators.rows import Array, Statistics
from ....adapters.numpy.operators.storage import Storage

#: What a target that computes so declares.
NATIVE = {"storage": "native"}


class Wide(Storage):
    """Everything computed in float64 and rounded once."""

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(np.float64)


class Native(Storage):
    """Every operation on 16-bit data is rounded to its dtype."""

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        return dtype


def native_statistics(x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
    """Statistics whose reciprocal root is one division, in the dtype of x."""
    root = np.sqrt(variance + eps)
    return Statistics(mean, variance, x.dtype.type(1) / root)
