"""How far roundings carry the results of a wrong formula, which may be less stable than the right one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...adapters.numpy.operators.implementation import Implementation
from ...reference.formats import FORMATS
from ..cases.case import Case
from ..judging.truth import gradient_name

#: Units in the last place by which each value of x moves, up or down: about the error of the mean of a hundred values.
_MOVED = 8.0
#: Factor for the directions that are not tried: few of them change a group's results by more than this many times.
_OTHERS = 8.0


def sensitivity(implementation: Implementation, case: Case, *, gradients: bool) -> Mapping[str, np.ndarray]:
    """
    How much each output or gradient of a case may change with roundings: one number for all values of a group.

    16-bit values are converted to float32, in which the steps are computed.
    """
    if case.record.composed:
        return {}
    wide = np.float64 if case.x.dtype == np.float64 else np.float32
    given = {name: None if value is None else value.astype(wide) for name, value in case.inputs.items()}
    x, random = given["x"], case.random("roundings").random(case.x.size).reshape(case.x.shape)
    assert x is not None
    unit = FORMATS[np.dtype(wide).name].unit_roundoff
    moved = (x * (1 + np.where(random < 0.5, -2 * _MOVED, 2 * _MOVED) * unit)).astype(wide)
    try:
        before = _results(implementation, case, given, gradients=gradients)
        after = _results(implementation, case, {**given, "x": moved}, gradients=gradients)
    except Exception:  # raising may be the mistake, here or elsewhere
        return {}
    return {
        name: _OTHERS * _by_group(case, np.abs(after[name].astype(np.float64) - one.astype(np.float64)))
        for name, one in before.items()
        if name in after
    }


def _results(
    implementation: Implementation, case: Case, given: Mapping[str, np.ndarray | None], *, gradients: bool
) -> dict[str, np.ndarray]:
    if gradients:
        names = [gradient_name(name) for name in case.record.differentiable]
        found = implementation.vjp(*given.values(), case.g.astype(given["x"].dtype), **case.settings)  # type: ignore
    else:
        names = list(case.record.outputs)
        found = implementation.call(*given.values(), **case.settings)
    values = found if isinstance(found, tuple) else (found,)
    return {name: value for name, value in zip(names, values, strict=False) if value is not None}


def _by_group(case: Case, changed: np.ndarray) -> np.ndarray:
    if changed.shape != case.x.shape or not changed.size:
        return changed
    rows = case.layout.rows(changed)
    return case.layout.back(np.broadcast_to(rows.max(axis=1, keepdims=True), rows.shape))
