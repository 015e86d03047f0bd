"""The order of a report: by target, operator, binding and dtype, as they are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...adapters.dtypes import DTYPES
from ..judging.verdicts import CaseCount, Result


class Order:
    """The order of results in a report on some subjects."""

    def __init__(self, subjects: Sequence[Mapping[str, Any]], dtypes: Sequence[str] | None) -> None:
        targets: dict[str, int] = {}
        operators: dict[tuple[str, str], int] = {}
        self._subjects: dict[tuple[str, str, str], tuple[int, ...]] = {}
        for place, one in enumerate(subjects):
            target, op, binding = one["target"], one["op"], one["binding"]
            found = targets.setdefault(target, place), operators.setdefault((target, op), place), place
            self._subjects.setdefault((target, op, binding), found)
        self._dtypes = {dtype: place for place, dtype in enumerate(dtypes or DTYPES)}

    def place(self, one: Result | CaseCount) -> tuple[int, ...]:
        """The sort key of a result."""
        return *self._subjects[one.target, one.op, one.binding], self._dtypes[one.dtype]
