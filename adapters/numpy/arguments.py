"""What the built-in NumPy layers refuse: arguments that do not fit together, each with a ValueError that says how."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Array


def check_float(array: Any, name: str) -> None:
    """Raise ValueError unless this is an array of floating point numbers."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is {type(array).__name__}, not an array")
    # ml_dtypes.bfloat16 is of kind "V", and its name tells it from NumPy's own.
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise ValueError(f"{name} has dtype {array.dtype.name}, which is no float")


def check_eps(eps: float) -> None:
    """Raise ValueError unless eps is zero or positive, and finite."""
    if not 0.0 <= eps < np.inf:
        raise ValueError(f"eps is {eps}, neither zero nor positive")


def like(array: Any, x: Array, name: str) -> Array:
    """The array. Raises ValueError unless it has x's shape: one of another shape would be broadcast silently."""
    check_float(array, name)
    if array.shape != x.shape:
        raise ValueError(f"{name} has shape {array.shape}, not that of x: {x.shape}")
    return array
