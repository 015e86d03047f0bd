"""Argument checks of the reference functions; each error says what to pass instead."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from .formats import FORMATS

#: pytest then shows the test's line that passed these arguments, not the line here that refuses them.
__tracebackhide__ = True


def checked_array(name: str, value, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a value as an array of its own dtype.

    Raises ValueError if NumPy makes no array of it, the dtype is none of FORMATS or the shape is not `shape`.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # as for rows of unequal length, or a tensor with a gradient
        raise ValueError(f"{name} is no array ({error}): pass an array of one of {', '.join(FORMATS)}") from error
    if array.dtype.name not in FORMATS:
        raise ValueError(f"{name} is of dtype {array.dtype}: pass an array of one of {', '.join(FORMATS)}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}: pass one of shape {shape}")
    return array


def checked_floats(name: str, value, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return the values of `checked_array` as float64, exactly; always a new array."""
    return checked_array(name, value, shape).astype(np.float64)


def refuse_no_axis(shape: tuple[int, ...]) -> None:
    """Raise ValueError if an x of this shape is a single number."""
    if not shape:
        raise ValueError("x has shape (): pass an array of at least one axis")


def trailing_shape(x: np.ndarray, axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the normalised axes; ValueError where they are not x's last ones."""
    refuse_no_axis(x.shape)
    count = len(axes) if isinstance(axes, Sequence) else 0
    if count == 0 or [_integer(axis) for axis in axes] != list(range(-count, 0)) or count > x.ndim:
        raise ValueError(
            f"axes is {axes!r}: pass trailing axes of x, which has {x.ndim}, as negative integers"
            " in order, (-1,) or (-2, -1) for instance"
        )
    return x.shape[-count:]


def channel_from_front(x: np.ndarray, channel_axis: int) -> int:
    """Return the channel axis counted from the front; ValueError where x has no such axis, or no other."""
    if x.ndim < 2:
        raise ValueError(f"x has shape {x.shape}: pass an array of at least two axes, for samples and for channels")
    axis = _integer(channel_axis)
    if axis is None or not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"channel_axis is {channel_axis!r}: pass an integer from {-x.ndim} to {x.ndim - 1}, as x has {x.ndim} axes"
        )
    return axis % x.ndim


def sample_channels(x: np.ndarray, channel_axis: int) -> tuple[int, int]:
    """
    Return the channel axis counted from the front and the number of channels; axis 0 holds the samples.

    Raises ValueError if x has fewer than two axes, no such axis or no channels, or if the axis is axis 0.
    """
    axis = channel_from_front(x, channel_axis)
    if axis == 0:
        raise ValueError(f"channel_axis is {channel_axis!r}, the axis of the samples: pass another axis of x")
    if x.shape[axis] == 0:
        raise ValueError(f"x has shape {x.shape} and no channels along axis {axis}: pass at least one")
    return axis, x.shape[axis]


def group_count(groups: int, channels: int) -> int:
    """Return the number of groups in each sample; ValueError where it does not divide the channels."""
    count = _integer(groups)
    if count is None or count < 1 or channels % count:
        raise ValueError(f"groups is {groups!r}: pass a positive integer that divides the {channels} channels")
    return count


def nonnegative(name: str, value: float, most: float = math.inf) -> float:
    """Return a number as a float; ValueError if it is not a number, negative, above `most` or not finite."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and 0 <= number <= most):
        bound = "" if most == math.inf else f" and at most {most:g}"
        raise ValueError(f"{name} is {value!r}: pass a finite number, at least 0{bound}")
    return number


def _integer(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for anything else, True and False included."""
    if type(value) is int:  # the usual case; the protocol check below is slow
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several values, or of other numbers
        return None
