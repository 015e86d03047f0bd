"""Which values are normalised together, seen from what changes when one of them does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...spec.errors import Unsupported
from ...spec.layout import Layout
from ...spec.operators import OPERATORS, Groups
from ..cases.case import Case
from .bench import Bench
from .failing import UnclearAnswer
from .probe import NORMALISATIONS, probe
from .table import Cell

#: Shapes with six channels on axis 1. The first whose rank a binding takes is measured.
_SHAPES = ((4, 6, 2), (4, 6), (2, 6, 2, 2), (2, 6, 2, 2, 2))


def _changed(bench: Bench, shape: tuple[int, ...], settings: dict[str, Any]) -> np.ndarray:
    """Where y changes if the first value of x does."""
    kind = bench.format.dtype
    random = np.random.Generator(np.random.Philox(7))
    before = random.integers(-8, 9, shape) + 0.5  # none is zero: without a mean, zero stays zero
    after = before.copy()
    after[(0,) * len(shape)] += 96.0
    parameters = Layout.of(bench.operator, shape, settings).parameter_shape
    filled = {"gamma": 1, "beta": 0, "running_mean": 0, "running_var": 1}
    ys = []
    for x in (before, after):
        inputs: dict[str, Any] = {"x": x.astype(kind)}
        inputs |= {
            name: np.full(parameters, filled[name], kind) if bench.takes(name) else None
            for name in bench.record.parameters
        }
        case = Case(bench.operator, inputs, settings, np.ones(shape, kind))
        ys.append(bench.outputs(case)["y"].astype(np.float64))
    # The change is so large that its whole group moves. Repeated calls only change last bits.
    changed = np.abs(ys[1] - ys[0]) > 2.0**-6
    return changed | (np.isnan(ys[1]) != np.isnan(ys[0]))


def _reached(bench: Bench, shape: tuple[int, ...], settings: dict[str, Any]) -> list[int]:
    """The axes of x along which a change of its first value reaches y."""
    changed = _changed(bench, shape, settings)
    found = [axis for axis in range(len(shape)) if np.any(np.take(changed, range(1, shape[axis]), axis=axis))]
    whole = np.zeros(shape, bool)
    whole[tuple(slice(None) if axis in found else slice(0, 1) for axis in range(len(shape)))] = True
    if changed.any() and not np.array_equal(changed, whole):  # a value normalised by itself changes nothing
        raise UnclearAnswer("a change of one value reaches part of an axis")
    return [axis - len(shape) for axis in found]


def _written(axes: list[int]) -> str:
    return f"({', '.join(map(str, axes))})" if axes else "none"


def _of(*groups: Groups) -> list[str]:
    return [name for name in NORMALISATIONS if OPERATORS[name].groups in groups]


@probe("axes", "axes normalised", _of(Groups.TRAILING))
def trailing_axes(bench: Bench) -> Cell:
    """Finds the axes that are normalised in an array with three axes, for axes (-1,) and (-2, -1)."""
    words, evidence = [], {}
    for axes in ((-1,), (-2, -1)):
        asked = _written(list(axes))
        try:
            found = _reached(bench, (2, 3, 4), {"eps": 2.0**-10, "axes": axes})
        except Unsupported as lacking:
            if axes == (-1,):
                raise
            words.append(f"{asked} unsupported")
            evidence[asked] = str(lacking)
            continue
        evidence[asked] = found
        if found != list(axes):
            words.append(f"{asked} reaches {_written(found)}")
    return Cell("; ".join(words) or "as given", evidence=evidence)


def _placed(bench: Bench, **more: Any) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Shapes of one rank that the binding takes, with the channels at axis 1 and at the last one, and settings."""
    values = {"eps": 2.0**-10, "momentum": bench.momentum, "training": True, **more}
    taken = False
    for shape in _SHAPES:
        for axis in (1, -1):
            x_shape = shape if axis == 1 else (shape[0], *shape[2:], shape[1])
            settings = {name: {**values, "channel_axis": axis}[name] for name in bench.record.settings}
            if not bench.declines(x_shape, settings):
                taken = True
                yield x_shape, settings
        if taken:
            return
    raise Unsupported("no shape that was tried is taken")


@probe("channel_axis", "channel axis", (name for name in NORMALISATIONS if OPERATORS[name].has_channels))
def channel_axis(bench: Bench) -> Cell:
    """
    Finds the axes that a change reaches, with the channels at axis 1 and at the last one.

    If samples are normalised together, these are all axes but that of the channels; otherwise they are the positions.
    For group_norm, all channels are put into one group, so the change reaches both positions and channels.
    """
    words, evidence = [], {}
    for shape, settings in _placed(bench, groups=1):
        axis, rank = settings["channel_axis"], len(shape)
        asked = f"{axis} of {rank}"
        found = _reached(bench, shape, settings)
        evidence[asked] = found
        layout = Layout.of(bench.operator, shape, settings)
        one = layout.back(np.arange(layout.count * layout.size).reshape(layout.count, layout.size) < layout.size)
        expected = [place - rank for place in range(rank) if np.take(one, range(1, shape[place]), axis=place).any()]
        if found != expected:
            words.append(f"{asked}: {_written(found)} normalised")
    return Cell("; ".join(words) or "as given", evidence=evidence)


@probe("channels", "channels of a group", (name for name in NORMALISATIONS if "groups" in OPERATORS[name].settings))
def channels_of_a_group(bench: Bench) -> Cell:
    """Finds which of six channels in two groups a change of the first one reaches."""
    words, evidence = [], {}
    for shape, settings in _placed(bench, groups=2):
        axis = settings["channel_axis"]
        changed = np.moveaxis(_changed(bench, shape, settings)[0], axis - (axis > 0), 0).reshape(6, -1)
        found = [channel for channel in range(6) if changed[channel].any()]
        evidence[f"{axis} of {len(shape)}"] = found
        words.append(_CHANNELS.get(tuple(found), f"channels {', '.join(map(str, found))} of 6 in 2 groups"))
    return Cell("; ".join(dict.fromkeys(words)), evidence=evidence)


#: Names of the sets of channels besides the first, of six in two groups.
_CHANNELS = {
    (0, 1, 2): "consecutive",
    (0, 2, 4): "interleaved (c mod G)",
    (0, 1): "G channels each",
    (0,): "each channel alone",
    (0, 1, 2, 3, 4, 5): "all of a sample",
}
