"""Witness groups: at most four explicit numbers, each group the smallest sign of a fault.

A case repeats the numbers to the length it needs, and failures shrink to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs


@attrs.frozen
class Witness:
    """A few numbers and what they show."""

    shows: str
    #: The numbers, given the eps of the call.
    values: Callable[[float], tuple[float, ...]]


def _fixed(*numbers: float) -> Callable[[float], tuple[float, ...]]:
    return lambda eps: numbers


def _about_eps(eps: float) -> tuple[float, ...]:
    root = math.sqrt(eps) if eps > 0 else 1.0
    return (-root, root)


#: Simplest first: shrinking moves towards the head of this list.
WITNESSES: tuple[Witness, ...] = (
    Witness("unbiased variance: n/(n-1) = 2 for two values", _fixed(-1.0, 1.0)),
    Witness("a mean that is not subtracted", _fixed(0.0, 1.0)),
    Witness("eps misplaced: the variance equals eps", _about_eps),
    Witness("a wrong centre: mean and median differ", _fixed(0.0, 0.0, 3.0)),
    Witness("a zero group: eps alone is left", _fixed(0.0)),
    Witness("a constant group: only rounding is left", _fixed(3.0)),
    Witness("an asymmetric group: sign and skew survive", _fixed(1.0, 2.0, 4.0, -3.0)),
    Witness("one-pass variance in float32", _fixed(4095.0, 4096.0, 4097.0, 4100.0)),
    Witness("one-pass variance below zero", _fixed(40000.0, 40001.0, 40002.0, 40003.0)),
    Witness("two close values far from zero", _fixed(-1.8397, -1.8296)),
    Witness("one-pass variance in 16 bits", _fixed(127.0, 128.0, 129.0, 128.0)),
    # The mean and the mean of squares of seven of these both round in float32: 4% of the variance is lost.
    Witness("one-pass variance in bfloat16", _fixed(254.0, 254.0, 254.0, 253.0)),
)
