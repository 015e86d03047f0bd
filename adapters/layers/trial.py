"""Trials: calls of a layer with neutral parameters, to find out what it takes and computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...spec.operators import OPERATORS, Groups
from ..dtypes import DTYPES
from ..fixed import parameter_choices
from .canonical_calls import Layers

#: The size of the first layer made of a class, and how many groups its channels form.
SIZE, GROUPS = 8, 2
#: A number of channels that most numbers of groups divide, up to 64.
DIVISIBLE_SIZE = 960


def size_of(layers: Layers) -> tuple[int, ...]:
    """The normalised extents, or the number of channels, that a layer has or can be made with."""
    fixed = layers.fixed
    if fixed.shape:
        return fixed.shape
    if OPERATORS[layers.operator].groups is not Groups.TRAILING:
        return (fixed.channels or SIZE * (fixed.groups or 1),)
    return (SIZE,) if fixed.axes in (None, 1) else (2,) * fixed.axes


def numbers_of(layers: Layers) -> dict[str, Any]:
    """Ordinary values of eps, momentum and groups, as far as the constructor takes them."""
    wanted = {"eps": 1e-5, "momentum": 0.25, "groups": layers.fixed.groups or GROUPS}
    settings = OPERATORS[layers.operator].settings
    return {name: value for name, value in wanted.items() if layers.takes(name) and name in settings}


def given_of(layers: Layers) -> tuple[str, ...]:
    """Which of gamma and beta to give a layer: both if it takes both."""
    return layers.fixed.given[0] if layers.fixed.given else parameter_choices(layers.operator)[0]


def shape_of(layers: Layers, rank: int) -> tuple[int, ...]:
    """A shape of x of this rank, with neighbouring extents different if there is a choice."""
    size = size_of(layers)
    if OPERATORS[layers.operator].groups is Groups.TRAILING:
        return (*_around(rank - len(size)), *size)
    around = _around(rank - 1)
    place = _channel_axis(layers) % rank
    return (*around[:place], *size, *around[place:])


def _around(count: int) -> tuple[int, ...]:
    """The extents of so many other axes."""
    return ((3, 2, 4, 2) + (1,) * count)[:count]


def rank_of(layers: Layers) -> int:
    """A rank that x can have."""
    return (layers.fixed.ranks or layers.fixed.native or (3,))[0]


def trial_results(
    layers: Layers,
    x: np.ndarray,
    *,
    size: tuple[int, ...] | None = None,
    dtype: str = "float32",
    variance: float = 1.0,
    training: bool = False,
) -> list[np.ndarray]:
    """
    The results of a call with gamma 1, beta 0, and running statistics of this variance, on the first device that works.

    Raises the layer's exception from the first device if none works.
    """
    record, bridge, size = OPERATORS[layers.operator], layers.kit.bridge, size or size_of(layers)
    values = {"gamma": 1.0, "beta": 0.0, "running_mean": 0.0, "running_var": variance}
    given = {*given_of(layers), *record.statistics}
    arrays = [np.full(size, values[name]) if name in given else None for name in record.parameters]
    dtype = layers.kit.dtype_of(layers.made(size_of(layers), given_of(layers), **numbers_of(layers)).layer) or dtype
    fixed = layers.fixed
    settings = {
        "eps": 1e-5 if fixed.eps is None else fixed.eps,
        "momentum": 0.25,
        "axes": tuple(range(-len(size), 0)),
        "training": training,
        "channel_axis": _channel_axis(layers),
        "groups": fixed.groups or GROUPS,
    }
    failed: Exception | None = None
    for device in bridge.devices():
        tensors = [
            None if one is None else bridge.tensor(one.astype(DTYPES[dtype]), "contiguous", device)
            for one in (x, *arrays)
        ]
        try:
            with bridge.guarded(x.size, gradients=False):
                called = layers(
                    *tensors,
                    mode="training" if training else "inference",
                    **{name: settings[name] for name in record.settings},
                )
                return [bridge.array(one, "y") for one in (called if record.statistics else (called,))]
        except Exception as error:
            failed = failed or error
    assert failed is not None
    raise failed


def ordinary_values(shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary values of this shape, with neighbours different."""
    return ((np.arange(math.prod(shape)) * 7) % 11 - 5.0).reshape(shape)


def _channel_axis(layers: Layers) -> int:
    axis = layers.fixed.channel_axis
    return layers.kit.channel_axis if axis is None else axis
