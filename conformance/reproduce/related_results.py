"""Results of several calls that must be the same, or related to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...spec.layout import Layout
from ..reporting.numbers import element_name
from .assertion_lines import Assertion, is_equal
from .probed_steps import ProbedSteps

#: The possible factors between two results in a law that holds to the last bit.
_FACTORS = tuple(sign * 2.0**power for power in range(-8, 9) for sign in (1, -1))


def repeated(probed: ProbedSteps) -> Assertion | None:
    """Calls that ask the same and differ in their bits."""
    differ = probed.differing()
    if differ is None:
        return None
    earlier, place, name = differ
    words = f"repeated calls give another {name}"
    first, second = probed.steps[earlier].results[name], probed.steps[place].results[name]
    keep = f"several.append(numbers({first}))"
    check = f"assert all(np.array_equal(numbers({second}), one, equal_nan=True) for one in several), {words!r}"
    if earlier == place:
        return Assertion(place, (keep, check), words, first=("several = []",))
    return Assertion(place, (check,), words, first=("several = []",), after={earlier: (keep,)})


def related(probed: ProbedSteps) -> Assertion | None:
    """A law between two calls that holds to the last bit."""
    found = probed.found
    if found.envelope != 0 or found.expected is None or found.got is None:
        return None
    for place in range(probed.last, -1, -1):
        step = probed.steps[place]
        variable = step.results.get(found.output)
        for got in probed.received(place) if variable else ():
            if got != found.got:
                continue
            for other, index, factor in _partners(probed, place, found.output, found.index, found.expected):
                mine = element_name(variable or "", found.index)
                theirs = element_name(probed.steps[other].results[found.output], index)
                times = "" if factor == 1 else f"{factor:g} * "
                lines = is_equal(mine, f"{times}float({theirs})")
                return Assertion(max(place, other), lines, f"{mine} must be {times}{theirs}, to the last bit")
    return None


def _partners(
    probed: ProbedSteps, place: int, name: str, index: tuple[int, ...], expected: float
) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """Elements of other calls' results that equal the expected value, or do so times a power of two."""
    for other, step in enumerate(probed.steps):
        if other == place or step.again is not None or name not in step.results:
            continue
        for seen in probed.all(other, name)[:1]:
            if seen.values is None:
                continue
            for where in _counterparts(probed, place, other, index):
                value = float(seen.values[where])
                factor = next((one for one in _FACTORS if one * value == expected), None)
                if factor is not None and value != 0:
                    yield other, where, factor


def _counterparts(probed: ProbedSteps, place: int, other: int, index: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The matching element of another call's x: the one in the same group of values, wherever that group is."""
    mine, theirs = probed.steps[place].call, probed.steps[other].call
    x, there = mine.inputs["x"], theirs.inputs["x"]
    assert x is not None and there is not None
    if x.shape == there.shape and np.count_nonzero(x) and _multiple(x, there):
        yield index
        return
    here = Layout.of(probed.judge.operator, x.shape, mine.settings)
    away = Layout.of(probed.judge.operator, there.shape, theirs.settings)
    numbered = here.rows(np.arange(x.size).reshape(x.shape))
    elsewhere = away.rows(np.arange(there.size).reshape(there.shape))
    if here.size != away.size:
        return
    group, position = (int(one[0]) for one in np.nonzero(numbered == np.ravel_multi_index(index, x.shape)))
    values, others = here.rows(x.astype(np.float64)), away.rows(there.astype(np.float64))
    for row in np.flatnonzero((others == values[group]).all(axis=1)):
        yield tuple(int(one) for one in np.unravel_index(int(elsewhere[row, position]), there.shape))


def _multiple(x: np.ndarray, other: np.ndarray) -> bool:
    """Whether one array is the other times a power of two, or times its negative."""
    a, b = x.astype(np.float64), other.astype(np.float64)
    return any(np.array_equal(a, factor * b, equal_nan=True) for factor in _FACTORS)
