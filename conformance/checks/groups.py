"""Counts, chooses and takes apart the groups of a case, as its layout says."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...spec.layout import Layout
from ...spec.operators import Groups
from ..cases.case import Case


def group_count(case: Case) -> int:
    """Return the number of groups that have values."""
    return case.layout.count if case.layout.size else 0


def some_groups(case: Case) -> tuple[int, ...]:
    """Return the first, the middle and the last group: block boundaries lie between them."""
    count = group_count(case)
    return tuple(sorted({0, count // 2, count - 1})) if count else ()


def only_group(case: Case, group: int) -> Case:
    """Return the case with one group alone: one row of batch size 1, one channel, or some channels of one sample."""
    layout = case.layout
    x, g = layout.rows(case.x)[group], layout.rows(case.g)[group]
    blocks, width = layout.blocks, layout.width
    own = slice(group % blocks * width, (group % blocks + 1) * width)
    changes: dict[str, Any] = {}
    if blocks > 1:
        changes = {name: None if value is None else value[own] for name, value in case.inputs.items() if name != "x"}
    if "groups" in case.settings:
        changes["groups"] = 1
    shape = _shape(case, 1)
    if blocks > 1:
        shape = tuple(width if axis in layout.parameter else size for axis, size in enumerate(shape))
    alone = Layout.of(case.operator, shape, {**case.settings, "groups": 1})
    return case.replace(x=alone.back(x.reshape(1, -1)), g=alone.back(g.reshape(1, -1)), **changes)


def of_samples(case: Case, values: np.ndarray) -> Case:
    """The case with other samples: one a row, in the order of the layout's rows. The cotangent is ones."""
    shape = _shape(case, len(values))
    layout = Layout.of(case.operator, shape, case.settings)
    return case.replace(x=layout.back(values.reshape(layout.count, -1)), g=np.ones(shape, case.g.dtype))


def _shape(case: Case, samples: int) -> tuple[int, ...]:
    """
    x's shape with this many samples along the first axis; the other axes along which gamma repeats have size 1.

    The rank stays: many functions take one rank only.
    """
    before = case.layout.before
    if not before and samples == 1:
        return case.x.shape
    if before == (0,):
        return (samples, *case.x.shape[1:])
    rest = tuple(size for axis, size in enumerate(case.x.shape) if axis not in before)
    return rest if case.record.groups is Groups.CHANNEL else (samples, *(1 for _ in before[1:]), *rest)
