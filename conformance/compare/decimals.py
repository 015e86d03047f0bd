"""Numbers from solving an equation, written as short as their accuracy allows."""

from __future__ import annotations

import math


def shortest(value: float, tolerance: float) -> str:
    """The decimal with the fewest digits within this relative tolerance: 9.9999998e-06 is 1e-05."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        if abs(float(text) - value) <= tolerance * abs(value):
            return f"{float(text):g}" if digits <= 6 else text
    return repr(value)
