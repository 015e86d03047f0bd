"""The variance that is divided by."""

from __future__ import annotations

import numpy as np

from .bench import NO_EPS, Bench
from .decimals import shortest
from .failing import UnclearAnswer
from .placement import PATTERN, ratio_of
from .probe import BLOCKS, NORMALISATIONS, probe
from .table import Cell

#: The variance of four values against the biased one, by what they are divided by.
_DIVISORS = {1.0: "biased (n)", 4 / 3: "unbiased (n - 1)", 4 / 5: "divided by n + 1", 2.0: "divided by n - 2"}


def relative_variance(bench: Bench) -> float:
    """The variance used, over the biased one, of four values; measured where no eps shows."""
    # pre_norm's x is added to what is asked for, and a large one would leave no digits of it.
    large = 1.0 if bench.operator == "pre_norm" else 2.0**5 if bench.format.name == "float16" else 2.0**20
    factor = ratio_of(bench.call([PATTERN * large], eps=NO_EPS).group, large)
    return 1 / (factor * large) ** 2


@probe("variance", "variance", (*NORMALISATIONS, *BLOCKS))
def variance(bench: Bench) -> Cell:
    """The divisor, from four values; and whether the mean is taken off, from the same values elsewhere."""
    found = bench.once("relative_variance", relative_variance)
    moved = bench.call([PATTERN * 8.0 + 8.0], eps=NO_EPS).group
    evidence = {"relative": found, "moved": [float(v) for v in moved]}
    # From 0, 0, 16, 16: the sign of the first value is that of x - mean.
    if not np.all(np.isfinite(moved)) or moved[0] >= 0:
        return Cell("mean not subtracted", evidence=evidence)
    for value, name in _DIVISORS.items():
        if abs(found / value - 1) <= max(2.0**-9, 8 * bench.format.unit_roundoff):
            return Cell(name, evidence=evidence)
    if not found > 0:
        raise UnclearAnswer(f"the variance used is {found:g} times the biased one")
    return Cell(f"{shortest(found, 2.0**-9)} times biased", evidence=evidence)
