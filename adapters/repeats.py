"""A call that is made several times, to see whether its results stay the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from .same_bits import same_bits

Results = TypeVar("Results", bound="Mapping[str, np.ndarray | None]")


def repeated(
    call: Callable[[], Results], times: int, spoiler: Callable[[Results], Callable[[], object]]
) -> list[Results]:
    """
    The results of ``times`` calls. Results with the same bits as the first are the first, and take no memory.

    ``spoiler`` gets the first results. What it returns runs between two calls, and fills the memory that a call has
    freed: a place that the next call fails to write would hold the right value.
    """
    first = call()
    results = [first]
    if times == 1:
        return results
    spoil = spoiler(first)
    for _ in range(times - 1):
        spoil()
        results.append(_first_if_alike(first, call()))
    return results


def _first_if_alike(first: Results, again: Results) -> Results:
    return first if _alike(again, first) else again


def _alike(one: Mapping[str, np.ndarray | None], other: Mapping[str, np.ndarray | None]) -> bool:
    return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b if a is None or b is None else same_bits(a, b)
