"""Which values are normalised together: told by what changes when one of them does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...spec.errors import Unsupported
from ..cases.case import Case
from .bench import MOMENTUM, Bench
from .failing import UnclearAnswer
from .probe import probe
from .table import Cell


def _reached(bench: Bench, shape: tuple[int, ...], parameters: tuple[int, ...], settings: dict[str, Any]) -> list[int]:
    """The axes of x along which a change of its first value reaches y."""
    kind = bench.format.dtype
    random = np.random.Generator(np.random.Philox(7))
    before = random.integers(-8, 9, shape).astype(np.float64)
    after = before.copy()
    after[(0,) * len(shape)] += 96.0
    ys = []
    for x in (before, after):
        inputs: dict[str, Any] = {"x": x.astype(kind), "gamma": np.ones(parameters, kind)}
        inputs["beta"] = np.zeros(parameters, kind)
        if bench.record.statistics:
            inputs |= {"running_mean": np.zeros(parameters, kind), "running_var": np.ones(parameters, kind)}
        case = Case(bench.operator, inputs, settings, np.ones(shape, kind))
        ys.append(bench.outputs(case)["y"].astype(np.float64))
    # The change is so large that all of its group moves; repetition moves last bits.
    changed = np.abs(ys[1] - ys[0]) > 2.0**-6
    changed |= np.isnan(ys[1]) != np.isnan(ys[0])
    found = [axis for axis in range(len(shape)) if np.any(np.take(changed, range(1, shape[axis]), axis=axis))]
    whole = np.zeros(shape, bool)
    whole[tuple(slice(None) if axis in found else slice(0, 1) for axis in range(len(shape)))] = True
    if not np.array_equal(changed, whole):
        raise UnclearAnswer("a change of one value reaches part of an axis")
    return [axis - len(shape) for axis in found]


def _written(axes: list[int]) -> str:
    return f"({', '.join(map(str, axes))})" if axes else "none"


@probe("axes", "axes normalised", ("layer_norm",))
def layer_norm_axes(bench: Bench) -> Cell:
    """Of an array with three axes, for axes (-1,) and (-2, -1)."""
    words, evidence = [], {}
    for axes in ((-1,), (-2, -1)):
        asked = _written(list(axes))
        try:
            found = _reached(bench, (2, 3, 4), (3, 4)[2 - len(axes) :], {"eps": 2.0**-10, "axes": axes})
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


@probe("channel_axis", "channel axis", ("batch_norm",))
def channel_axis(bench: Bench) -> Cell:
    """All axes but the channels' are reached, with the channels at axis 1 and at the last one."""
    words, evidence = [], {}
    tried = 0
    for shape in ((4, 3, 2), (4, 3), (2, 3, 2, 2), (2, 3, 2, 2, 2)):
        for axis in (1, -1):
            settings = {"eps": 2.0**-10, "momentum": MOMENTUM, "training": True, "channel_axis": axis}
            if bench.binding.accepts(shape, settings):
                continue
            tried += 1
            asked = f"{axis} of {len(shape)}"
            found = _reached(bench, shape, (shape[axis],), settings)
            evidence[asked] = found
            own = axis % len(shape) - len(shape)
            if found != [other for other in range(-len(shape), 0) if other != own]:
                words.append(f"{asked}: {_written(found)} normalised")
        if tried:
            break
    if not tried:
        raise Unsupported("no shape that was tried is taken")
    return Cell("; ".join(words) or "as given", evidence=evidence)
