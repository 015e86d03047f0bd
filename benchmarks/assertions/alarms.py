"""Sound functions on many draws: any assertion that fails is a false alarm, and ends the run."""

from __future__ import annotations

import numpy as np

from normspec.adapters.numpy.operators import IMPLEMENTATIONS

from .data import CALLS, DTYPES, drawn, judge, results


def alarms(draws: int) -> None:
    """Judge the sound function of each operator in each dtype in turn, on groups of 2 to 64 values."""
    rng, judged = np.random.default_rng(1), 0
    made = {op: IMPLEMENTATIONS[op]().implementation() for op in CALLS}
    for draw in range(draws):
        op, dtype = list(CALLS)[draw % 5], list(DTYPES)[draw // 5 % 4]
        last = int(rng.integers(2, 65))
        shape = (int(rng.integers(1, 17)), last) if "axes" in CALLS[op][0] else (int(rng.integers(2, 5)), 8, last)
        inputs, g = drawn(op, dtype, rng, shape)
        found = results(made[op], op, inputs, g)
        judge(op, found, inputs, g)
        judged += sum(value.size for value in found.values())
    print(f"{draws:,} draws, {judged:,} elements, no false alarm")
