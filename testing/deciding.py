"""How far a result is outside its bound, where the exact value is at first known only approximately."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..conformance.judging.findings import ratios
from ..reference.double_double import DD
from ..reference.envelope_rows import Array
from ..reference.formats import format_of

#: The most that adding two numbers and comparing the sum with a third may lose in float64.
_ADDED = 1 + 2.0**-50


def decided_ratios(
    got: np.ndarray, value: Array, error: Array | None, bound: Array, exact_at: Callable[[np.ndarray], DD]
) -> Array:
    """
    Return |got - exact| / bound of every element, -1 where it is not judged; ``value`` is off by up to ``error``.

    Rows whose verdict stays open because of ``error`` are judged by ``exact_at(rows)``; ``value`` then holds their
    exact values. ``error`` None: the bound covers it.
    """
    far = np.abs(got.astype(np.float64) - value)
    inside = (far if error is None else (far + error) * _ADDED) <= bound
    if inside.all() and bound.max(initial=1.0) < np.inf and bound.min(initial=1.0) > 0:
        return far / bound
    ratio = ratios(got, DD(value, np.zeros_like(value)), bound)
    if error is not None:
        open_ = ~(inside | _outside(got, value, far, error, bound)) & np.isfinite(bound)
        rows = np.flatnonzero(open_.reshape(len(open_), -1).any(axis=1))
        if rows.size:
            exact = exact_at(rows)
            value[rows], ratio[rows] = exact.hi, ratios(got[rows], exact, bound[rows])
    return ratio


def _outside(got: np.ndarray, value: Array, far: Array, error: Array, bound: Array) -> np.ndarray:
    """Where an element is outside its bound for every exact value within ``error`` of ``value``."""
    # Near the format's largest number infinity is right too; `ratios` decides that.
    ordinary = np.isfinite(value) & (np.abs(value) + bound < format_of(got.dtype).largest / 2)
    return ordinary & ((far > (bound + error) * _ADDED) | np.isnan(got))
