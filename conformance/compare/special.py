"""NaN, infinity and subnormal numbers."""

from __future__ import annotations

import numpy as np

from ...spec.operators import OPERATORS
from ..reporting.json_values import plain
from .bench import PATTERN, Bench
from .plain import plain_case
from .probe import NORMALISATIONS, probe
from .table import Cell


def _spread(bench: Bench, planted: float) -> Cell:
    """Where y changes, and to what, when one value of the middle group is replaced by this."""
    case = plain_case(bench)
    rows = case.layout.rows(case.x)
    changed = rows.copy()
    changed[1, 2] = planted
    before = case.layout.rows(bench.outputs(case)["y"]).astype(np.float64)
    with np.errstate(all="ignore"):
        after = case.layout.rows(bench.outputs(case.replace(x=case.layout.back(changed)))["y"]).astype(np.float64)
        # Untouched values may move by their last bits; values touched by a NaN or an infinity move far.
        moved = ~(np.abs(after - before) <= 2.0**-4 * (1 + np.abs(before)))
    own, others = after[1], np.delete(moved, 1, axis=0)
    evidence = {"planted": str(planted), "group": [plain(v) for v in own]}
    lost = ~np.isfinite(own)
    kind = "NaN" if np.isnan(own).any() else "Inf"
    if not lost.any():
        text = "nothing"
    elif lost.all():
        text = f"its group {kind}"
    elif lost[2] and not np.delete(moved[1], 2).any():
        text = f"that value {kind}"
    else:
        text = f"part of its group {kind}"
    if others.any():
        text += ", others too"
    return Cell(text, evidence=evidence)


@probe("nan", "one NaN makes", OPERATORS)
def nan(bench: Bench) -> Cell:
    """Shows what one NaN in one group makes of y."""
    return _spread(bench, np.nan)


@probe("inf", "one Inf makes", OPERATORS)
def inf(bench: Bench) -> Cell:
    """Shows what one infinity in one group makes of y."""
    return _spread(bench, np.inf)


@probe("subnormal_inputs", "subnormal inputs", NORMALISATIONS)
def subnormal_inputs(bench: Bench) -> Cell:
    """Passes half the smallest normal number, and a gamma that makes y a normal one; eps = 1 adds no factor."""
    _ensure_free(bench)
    least = bench.format.smallest_normal
    y = bench.call([PATTERN * least / 2], eps=1.0, gamma=16.0).group
    return _kept(y, 8 * least)


@probe("subnormal_outputs", "subnormal outputs", NORMALISATIONS)
def subnormal_outputs(bench: Bench) -> Cell:
    """Passes twice the smallest normal number, and a gamma that makes y a subnormal one."""
    _ensure_free(bench)
    least = bench.format.smallest_normal
    y = bench.call([PATTERN * least * 2], eps=1.0, gamma=0.125).group
    return _kept(y, least / 4)


def _ensure_free(bench: Bench) -> None:
    bench.ensure_free_eps()
    bench.ensure_takes_gamma()


def _kept(y: np.ndarray, exact: float) -> Cell:
    evidence = {"y": [plain(v) for v in y], "exact": exact}
    if np.all(y == 0):
        return Cell("flushed to 0", evidence=evidence)
    return Cell("kept" if np.all(np.abs(np.abs(y) - exact) <= exact / 2) else "neither kept nor 0", evidence=evidence)
