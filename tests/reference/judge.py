"""The criterion for one result of the reference, and the record of how close each came."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

#: A result better conditioned than this must be within one ulp of the exact value.
WELL_CONDITIONED = 2.0**50
#: The roundoff at which the condition number E(u) / (u |exact|) is taken.
U = mpf(2) ** -102
LARGEST = mpf(np.finfo(np.float64).max)


def ulp(value: Any) -> Any:
    """Return the spacing of float64 at a value, 2^-1074 among the subnormals."""
    exponent = -1074 if value == 0 else max(mpmath.frexp(value)[1] - 53, -1074)
    return mpf(2) ** exponent


def worst(result: np.ndarray, exact: np.ndarray, envelope: np.ndarray) -> tuple[float, float]:
    """Return the worst error of a result, in ulps where well conditioned, and in the envelope elsewhere.

    `envelope` is E(2^-102), not counting the final rounding. The second figure is error / (E + ulp/2); both
    must be at most 1. Where the envelope is not finite it excuses nothing. A value beyond float64 must come as
    the infinity of its sign: 0 ulps, else infinitely many.
    """
    assert result.shape == exact.shape
    ulps = share = 0.0
    for got, true, bound in zip(result.flat, exact.flat, np.broadcast_to(envelope, result.shape).flat, strict=True):
        unit = ulp(true)
        if abs(true) >= LARGEST + unit / 2:
            ulps = max(ulps, 0.0 if got == mpmath.sign(true) * np.inf else np.inf)
            continue
        error = abs(mpf(float(got)) - true) if np.isfinite(got) else mpf("inf")
        if not mpmath.isfinite(bound) or bound < WELL_CONDITIONED * U * abs(true):
            ulps = max(ulps, float(error / unit))
        else:
            share = max(share, float(error / (bound + unit / 2)))
    return ulps, share
