"""Groups of a case, to be counted, chosen and taken apart; how they lie says its layout."""

from __future__ import annotations

from typing import Any

from ..cases.case import Case


def group_count(case: Case) -> int:
    """Return the number of groups that have values."""
    return case.layout.count if case.layout.size else 0


def some_groups(case: Case) -> tuple[int, ...]:
    """Return the first, the middle and the last group: block boundaries lie between them."""
    count = group_count(case)
    return tuple(sorted({0, count // 2, count - 1})) if count else ()


def only_group(case: Case, group: int) -> Case:
    """Return the case with one group alone: one row of batch size 1, or one channel."""
    layout = case.layout
    x, g = layout.rows(case.x)[group], layout.rows(case.g)[group]
    if layout.shared == 0:  # every group has all of gamma
        shape = (1, *(case.x.shape[axis] for axis in layout.group))
        return case.replace(x=x.reshape(shape), g=g.reshape(shape))
    shape = tuple(size if axis in layout.group else 1 for axis, size in enumerate(case.x.shape))
    columns: dict[str, Any] = {
        name: None if value is None else value[group : group + 1] for name, value in case.inputs.items() if name != "x"
    }
    return case.replace(x=x.reshape(shape), g=g.reshape(shape), **columns)
