"""How gate logits and fusion logits are drawn: moderate, tied, spread, saturated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .stream import Stream

#: Gate logits. The logistic function saturates from 8 on in float16, from 17 in float32, and from 37 in float64. exp
#: overflows from 89 in float32 and from 710 in float64.
GATES = ("mixed", "moderate", "extreme", "zero", "closed", "open", "infinite", "nearly_closed", "nearly_open")
#: Fusion logits. A spread is the largest less the smallest.
FUSIONS = (
    "mixed",
    "ties",
    "spread_8",
    "spread_12",  # a branch of weight 6e-6 still counts in float32
    "spread_30",  # and one of weight 9e-14 in float64
    "spread_100",
    "spread_10000",
    "one_closed",
    "large",
    "low",
    "huge",
    "lowest",
    "bottom",
    "zero",
)

_EXTREME = (30.0, -30.0, 100.0, -100.0, 1e4, -1e4, 0.0, 8.0, -8.0, 17.0, -17.0, 88.0, -88.0, 1.0)


def gate_logits(kind: str, shape: tuple[int, ...], random: Stream) -> NDArray[np.float64]:
    """Return float64 gate logits of one of GATES; a kind that only fusion logits have counts as "mixed"."""
    if kind == "moderate":
        return random.uniform(-6, 6, shape)
    if kind == "extreme":
        return np.resize(random.permutation(_EXTREME), shape)
    if kind == "zero":
        return np.zeros(shape)
    if kind in ("closed", "open"):
        return np.full(shape, -np.inf if kind == "closed" else np.inf)
    if kind in ("nearly_closed", "nearly_open"):  # the 3e-7 that are left count where nothing else is there
        return random.uniform(-16, -15, shape) if kind == "nearly_closed" else random.uniform(15, 16, shape)
    if kind == "infinite":  # both, with finite ones
        return np.resize(random.permutation([np.inf, -np.inf, 0.5, -2.0, 3.0]), shape)
    return 2 * random.standard_normal(shape)


def fusion_logits(kind: str, count: int, random: Stream, largest: float) -> NDArray[np.float64]:
    """Return float64 fusion logits of one of FUSIONS, not in order of their size; ``largest``: that of their format."""
    drawn = random.standard_normal(count)
    if kind == "zero":
        return np.zeros(count)
    if kind == "ties":  # two or more share the largest
        return np.where(np.arange(count) % 2 == 0, 1.5, drawn - 2)
    if kind.startswith("spread_"):
        spread = float(kind.removeprefix("spread_"))
        values = np.linspace(-spread / 2, spread / 2, count) if count > 1 else np.array([spread / 2])
        return random.permutation(values)
    if kind == "one_closed":
        values = drawn.copy()
        if count > 1:
            values[count // 2] = -np.inf
        return values
    if kind == "large":  # all far from zero, differences moderate: exp overflows unless the largest is subtracted
        return 200.0 + drawn
    if kind == "low":  # all far below zero: with a maximum that starts at 0, only zeros are left to divide by
        return -200.0 + drawn
    if kind == "huge":  # of magnitude 10^4, differences of a few steps of the narrowest format
        return 1e4 + 64.0 * random.permutation(np.arange(count))
    if kind == "lowest":  # below -10^4, which some code takes for minus infinity
        return -11008.0 - 64.0 * random.permutation(np.arange(count))
    if kind == "bottom":  # below what code begins a running maximum with, such as -1e9 or float16's largest
        return np.full(count, -min(2.0**100, largest))
    return drawn
