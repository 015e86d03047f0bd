"""Probes: one question to a binding each, in the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from ...spec.operators import OPERATORS
from .bench import Bench
from .table import Cell

Body = Callable[[Bench], Cell]

#: The operators that have statistics of their own, and the blocks that contain one.
NORMALISATIONS = tuple(name for name, one in OPERATORS.items() if one.normalises and not one.composed)
BLOCKS = tuple(name for name, one in OPERATORS.items() if one.normalises and one.composed)


@attrs.frozen
class Probe:
    """One row of the table."""

    #: Stable: it stands in the JSON.
    key: str
    title: str
    operators: tuple[str, ...]
    #: The dtype that the row is about; None for the dtype of the table.
    dtype: str | None
    body: Body


#: By key, in the order of the rows.
PROBES: dict[str, Probe] = {}


def probe(
    key: str, title: str, operators: Iterable[str] = NORMALISATIONS, *, dtype: str | None = None
) -> Callable[[Body], Body]:
    """Register a function as the probe of a row."""

    def register(body: Body) -> Body:
        if key in PROBES or not set(operators) <= set(OPERATORS):
            raise ValueError(f"{key} is there already, or names no operators: {operators}")
        PROBES[key] = Probe(key, title, tuple(operators), dtype, body)
        return body

    return register
