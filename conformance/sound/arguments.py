"""Refusing bad arguments: each check raises ValueError and says what would be right."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

Array = np.ndarray


def check_eps(eps: float) -> None:
    """Refuse an eps that is negative or not a number."""
    if not eps >= 0 or math.isinf(eps):
        raise ValueError(f"eps must be a finite number >= 0, not {eps!r}")


def check_momentum(momentum: float) -> None:
    """Refuse a weight of the new statistic that is outside 0 to 1 or not a number."""
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum must be a number from 0 to 1, not {momentum!r}")


def check_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Refuse axes that are not the trailing ones, as negative integers in order."""
    count = len(axes)
    if not 1 <= count <= len(shape) or tuple(axes) != tuple(range(-count, 0)):
        raise ValueError(
            f"axes must be trailing axes of an array of shape {shape}, such as (-1,) or (-2, -1), not {axes!r}"
        )


def check_channel_axis(shape: tuple[int, ...], channel_axis: int) -> None:
    """Refuse a channel axis that the array does not have."""
    if not -len(shape) <= channel_axis < len(shape):
        raise ValueError(f"channel_axis must lie within an array of {len(shape)} axes, not {channel_axis!r}")


def check_shapes(arrays: Mapping[str, Array | None], shape: tuple[int, ...]) -> None:
    """Refuse arrays of another shape; None passes."""
    for name, array in arrays.items():
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, not {array.shape}")
