"""The variance that is divided by, or the mean of the squares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...spec.operators import OPERATORS
from .bench import NEGLIGIBLE_EPS, PATTERN, Bench
from .decimals import shortest
from .failing import UnclearAnswer
from .placement import ratio_of
from .probe import BLOCKS, CENTRED, NORMALISATIONS, probe
from .table import Cell

#: Divisors of four values, by the ratio of the resulting variance to the biased one.
_DIVISORS = {1.0: "biased (n)", 4 / 3: "unbiased (n - 1)", 4 / 5: "divided by n + 1", 2.0: "divided by n - 2"}

#: The same for the mean of their squares.
_OF_SQUARES = {1.0: "divided by n", 4 / 3: "divided by n - 1", 4 / 5: "divided by n + 1", 4.0: "not divided"}


def relative_variance(bench: Bench) -> float:
    """The variance that is used, divided by the biased one; worked out once."""
    return bench.once("relative_variance", _relative_variance)


def _relative_variance(bench: Bench) -> float:
    """The same for four values with which eps has no influence."""
    # pre_norm adds x to the result, and a large x would leave no digits of the result.
    large = 1.0 if bench.record.normalises_handed else 2.0**5 if bench.format.name == "float16" else 2.0**20
    factor = ratio_of(bench.call([PATTERN * large], eps=NEGLIGIBLE_EPS).group, large)
    times = factor * large
    share = times * times  # a product may become infinite, where a power raises
    return 1 / share if share else math.inf


def _named(bench: Bench, found: float, names: Mapping[float, str], of: str) -> str:
    for value, name in names.items():
        if abs(found / value - 1) <= max(2.0**-9, 8 * bench.format.unit_roundoff):
            return name
    if not found > 0:
        raise UnclearAnswer(f"the {of} used is {found:g} times the {'biased' if of == 'variance' else 'right'} one")
    return f"{shortest(found, 2.0**-9)} times {'biased' if of == 'variance' else 'the mean'}"


def _measured(bench: Bench) -> tuple[float, np.ndarray, dict[str, Any]]:
    """
    The relative variance, y for 0, 0, 16, 16, and both as evidence.

    The first value of y has the sign of x - mean; without a mean it is 0.
    """
    found = relative_variance(bench)
    moved = bench.call([PATTERN * 8.0 + 8.0], eps=NEGLIGIBLE_EPS).group
    return found, moved, {"relative": found, "moved": [float(v) for v in moved]}


@probe("variance", "variance", (*CENTRED, *BLOCKS))
def variance(bench: Bench) -> Cell:
    """Finds the divisor from four values, and from these values shifted whether the mean is subtracted."""
    found, moved, evidence = _measured(bench)
    if not np.all(np.isfinite(moved)) or moved[0] >= 0:
        return Cell("mean not subtracted", evidence=evidence)
    return Cell(_named(bench, found, _DIVISORS, "variance"), evidence=evidence)


@probe("mean_square", "mean square", (name for name in NORMALISATIONS if not OPERATORS[name].centred))
def mean_square(bench: Bench) -> Cell:
    """Finds the divisor from four values whose mean is 0, and whether a mean is subtracted, which is wrong."""
    found, moved, evidence = _measured(bench)
    text = _named(bench, found, _OF_SQUARES, "mean square")
    return Cell(text if moved[0] == 0 else f"{text}; mean subtracted", evidence=evidence)
