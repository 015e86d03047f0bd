"""Refusing bad arguments: each check raises ValueError and says what would be right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray


def check_float(array: Any, name: str) -> None:
    """Refuse anything but an array of floating point numbers."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} must be an array, not {type(array).__name__}")
    # ml_dtypes.bfloat16 has kind "V"; its name tells it from NumPy's own dtypes of that kind.
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise ValueError(f"{name} must hold floating point numbers, not {array.dtype.name}")


def check_eps(eps: float) -> None:
    """Refuse an eps that is negative or not a number."""
    if not eps >= 0 or math.isinf(eps):
        raise ValueError(f"eps must be a finite number >= 0, not {eps!r}")


def check_momentum(momentum: float) -> None:
    """Refuse a weight of the new statistic that is outside 0 to 1 or not a number."""
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum must be a number from 0 to 1, not {momentum!r}")


def check_place(shape: tuple[int, ...], settings: Mapping[str, Any]) -> None:
    """Refuse settings that do not fit the shape: they must say which of its values are normalised together."""
    rank, axes, channel_axis = len(shape), settings.get("axes"), settings.get("channel_axis")
    if axes is not None and not (1 <= len(axes) <= rank and tuple(axes) == tuple(range(-len(axes), 0))):
        raise ValueError(
            f"axes must be trailing axes of an array of shape {shape}, such as (-1,) or (-2, -1), not {axes!r}"
        )
    if channel_axis is not None and not -rank <= channel_axis < rank:
        raise ValueError(f"channel_axis must lie within an array of {rank} axes, not {channel_axis!r}")
    groups = settings.get("groups", 1)
    if channel_axis is not None and (groups < 1 or shape[channel_axis] % groups):
        raise ValueError(f"groups must divide the {shape[channel_axis]} channels, not be {groups!r}")


def check_samples(shape: tuple[int, ...], channel_axis: int) -> None:
    """Refuse channels along axis 0, where the samples lie, and an array without channels."""
    if channel_axis % len(shape) == 0:
        raise ValueError(f"channel_axis must be another axis than that of the samples, axis 0, not {channel_axis!r}")
    if shape[channel_axis] == 0:
        raise ValueError(f"x must have at least one channel, not the shape {shape}")


def check_shapes(arrays: Mapping[str, Array | None], shape: tuple[int, ...]) -> None:
    """Refuse arrays that do not have this shape; None passes."""
    for name, array in arrays.items():
        if array is not None and np.shape(array) != shape:
            raise ValueError(f"{name} must have the shape {shape}, not {np.shape(array)}")
