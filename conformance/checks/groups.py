"""Groups of a case: which elements are normalised together, and how to take them apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..cases.case import Case


def group_axes(case: Case) -> tuple[int, ...]:
    """Return the axes of x that one group spans, counted from 0."""
    ndim = case.x.ndim
    if case.operator != "batch_norm":  # the composed operators normalise, or could, over the last axis
        return tuple(axis % ndim for axis in case.settings.get("axes", (-1,)))
    channel = case.settings["channel_axis"] % ndim
    return tuple(axis for axis in range(ndim) if axis != channel)


def group_size(case: Case) -> int:
    """Return the number of values in one group."""
    return math.prod(case.x.shape[axis] for axis in group_axes(case))


def group_count(case: Case) -> int:
    """Return the number of groups."""
    size = group_size(case)
    return case.x.size // size if size else 0


def as_rows(case: Case, values: np.ndarray) -> np.ndarray:
    """Return an array of x's shape as one row a group."""
    if case.operator != "batch_norm":
        return values.reshape(group_count(case), group_size(case))
    channel = case.settings["channel_axis"] % case.x.ndim
    return np.moveaxis(values, channel, 0).reshape(group_count(case), group_size(case))


def from_rows(case: Case, rows: np.ndarray) -> np.ndarray:
    """Return rows back in x's shape; the inverse of ``as_rows``."""
    if case.operator != "batch_norm":
        return rows.reshape(case.x.shape)
    channel = case.settings["channel_axis"] % case.x.ndim
    around = tuple(size for axis, size in enumerate(case.x.shape) if axis != channel)
    return np.ascontiguousarray(np.moveaxis(rows.reshape(rows.shape[0], *around), 0, channel))


def spread(case: Case, values: np.ndarray) -> np.ndarray:
    """Return gamma, beta or their like so that they broadcast against x."""
    if case.operator == "layer_norm":
        return values
    shape = [1] * case.x.ndim
    shape[case.settings["channel_axis"]] = values.size
    return values.reshape(shape)


def parameter_shape(case: Case) -> tuple[int, ...]:
    """Return the shape of gamma and beta."""
    if case.operator == "batch_norm":
        return (case.x.shape[case.settings["channel_axis"]],)
    return case.x.shape[case.x.ndim - len(case.settings["axes"]) :]


def some_groups(case: Case) -> tuple[int, ...]:
    """Return the first, the middle and the last group: block boundaries lie between them."""
    count = group_count(case)
    return tuple(sorted({0, count // 2, count - 1})) if count else ()


def only_group(case: Case, group: int) -> Case:
    """Return the case with one group alone: one row of batch size 1, or one channel."""
    x, g = as_rows(case, case.x)[group], as_rows(case, case.g)[group]
    if case.operator == "layer_norm":
        features = case.x.shape[case.x.ndim - len(case.settings["axes"]) :]
        return case.replace(x=x.reshape(1, *features), g=g.reshape(1, *features))
    channel = case.settings["channel_axis"] % case.x.ndim
    shape = (*case.x.shape[:channel], 1, *case.x.shape[channel + 1 :])
    columns: dict[str, Any] = {
        name: None if value is None else value[group : group + 1] for name, value in case.inputs.items() if name != "x"
    }
    return case.replace(x=x.reshape(shape), g=g.reshape(shape), **columns)
