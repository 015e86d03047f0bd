"""How the cost grows: with elements and groups of one call, and with dtypes, targets and seeds of a run."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

from rows.judging import run_of, sound
from rows.reference import exact, problem
from rows.row import DTYPES, Measured, Row


def reference(shapes: Sequence[tuple[int, int]], _: str) -> Measured:
    """Seconds of the reference for y and gradients of one call of each shape; if it is short, of a second call."""
    found = {}
    for shape in shapes:
        arguments = problem(shape)
        started = time.perf_counter()
        exact(*arguments)
        taken = time.perf_counter() - started
        if taken < 1:
            started = time.perf_counter()
            exact(*arguments)
            taken = time.perf_counter() - started
        found[f"{shape[0]:,} x {shape[1]:,}"] = taken
    return found


def _seconds(count: int, dtypes: Sequence[str], seeds: Sequence[int]) -> float:
    """Seconds to judge `count` sound functions of LayerNorm at `standard`, one seed after the other."""
    targets = sound("layer_norm", count)
    started = time.perf_counter()
    for seed in seeds:
        run_of(targets, "standard", dtypes=dtypes, seed=seed).report()
    return time.perf_counter() - started


def dtypes(_: str) -> Measured:
    """The cost of each further dtype."""
    _seconds(1, DTYPES[-1:], (0,))  # for imports on first use
    return {f"{n} dtypes": _seconds(1, DTYPES[-n:], (0,)) for n in (1, 2, 3, 4)}


def targets(_: str) -> Measured:
    """The cost of each further function of one operator; they share cases and truths."""
    _seconds(1, ("float32",), (0,))
    return {f"{n} targets": _seconds(n, ("float32",), (0,)) for n in (1, 2, 4, 8)}


def seeds(_: str) -> Measured:
    """The cost of each further seed: it adds new cases to the same deck."""
    _seconds(1, ("float32",), (0,))
    return {f"{n} seeds": _seconds(1, ("float32",), range(n)) for n in (1, 2, 4, 8)}


ELEMENTS = tuple((1, 10**k) for k in range(8))
GROUPS = tuple((10**k, 64) for k in range(5))
ROWS = (
    Row("elements", "the reference for y and gradients, one group of 1 to 10^7 values",
        functools.partial(reference, ELEMENTS), long=True),
    Row("groups", "the reference for y and gradients, 1 to 10^4 groups of 64", functools.partial(reference, GROUPS)),
    Row("dtypes", "own LayerNorm in NumPy, standard, one to four dtypes", dtypes),
    Row("targets", "functions of LayerNorm in NumPy, standard, float32, side by side", targets),
    Row("seeds", "own LayerNorm in NumPy, standard, float32, seed after seed", seeds),
)  # fmt: skip
