"""The place of eps: the named candidates, and which of them a target's answers fit."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import numpy as np

from ...spec.operators import Operator
from .bench import PATTERN, Bench
from .failing import UnclearAnswer

#: (deviation, eps) pairs, powers of two in every dtype. No two candidates agree on all of them.
_WITNESSES = ((1.0, 0.25), (0.25, 0.25), (0.25, 0.0625), (2.0, 1.0), (0.0625, 0.25))

#: A deviation so small, or so large, that only one term is left.
_SMALL, _LARGE = 2.0**-40, 2.0**20


@attrs.frozen
class Placement:
    """One formula for the factor of x - mean."""

    name: str
    #: (standard deviation, eps) -> the factor.
    factor: Callable[[float, float], float]
    #: (standard deviation, factor) -> eps; None if eps has no effect.
    solve: Callable[[float, float], float] | None = None
    #: The standard deviation of the group on which eps is measured.
    measured_at: float = _SMALL
    #: eps -> another deviation on which it is measured.
    measured_near: Callable[[float], float] = math.sqrt

    def solved(self, deviation: float, factor: float) -> float:
        """The eps for which this formula gives a factor; NaN if none does. The formula has to depend on eps."""
        assert self.solve is not None
        try:
            return self.solve(deviation, factor)
        except (ValueError, ArithmeticError):  # the root of a negative number, or a factor of 0
            return math.nan

    def words(self, record: Operator) -> str:
        """The name in the words of an operator: one without a mean has no variance."""
        if record.centred:
            return self.name
        return self.name.replace("deviation", "root mean square").replace("var", "mean square").replace("std", "rms")


def _squared(s: float, f: float) -> float:
    return 1 / f**2 - s**2


#: The plainest first.
PLACEMENTS: tuple[Placement, ...] = (
    Placement("inside the root", lambda s, e: 1 / math.sqrt(s * s + e), _squared),
    Placement("on the deviation", lambda s, e: 1 / (s + e), lambda s, f: 1 / f - s),
    Placement("not used", lambda s, e: 1 / s),
    Placement("sqrt(std + eps)", lambda s, e: 1 / math.sqrt(s + e), lambda s, f: 1 / f**2 - s),
    Placement("max(var, eps)", lambda s, e: 1 / math.sqrt(max(s * s, e)), lambda s, f: 1 / f**2),
    Placement("max(std, eps)", lambda s, e: 1 / max(s, e), lambda s, f: 1 / f, measured_near=lambda eps: eps / 2),
    Placement("std + sqrt(eps)", lambda s, e: 1 / (s + math.sqrt(e)), lambda s, f: (1 / f - s) ** 2),
    Placement("var + eps^2", lambda s, e: 1 / math.sqrt(s * s + e * e), lambda s, f: math.sqrt(_squared(s, f))),
    Placement("var + eps/n", lambda s, e: 1 / math.sqrt(s * s + e / 4), lambda s, f: 4 * _squared(s, f)),
    Placement("after the root", lambda s, e: 1 / s + e, lambda s, f: f - 1 / s, _LARGE),
)

#: How much larger the variance of four values is with the divisors n, n - 1 and 1. These may be mistaken for a place of
#: eps.
_DIVISORS = (1.0, 4 / 3, 4.0)


@attrs.frozen
class Fit:
    """The candidate that fits best, and the factor of the variance relative to the biased one."""

    placement: Placement
    divisor: float
    #: The largest relative distance of a witness from the candidate's formula.
    distance: float
    #: The measured factors, one for each witness.
    measured: tuple[float, ...]


def factor_at(bench: Bench, deviation: float, eps: float, *, training: bool = True, asked: bool = False) -> float:
    """
    The factor of x - mean, measured on one group with this deviation.

    Raises UnclearAnswer if y is not a multiple of the group.
    """
    answer = bench.call(
        [PATTERN * deviation], eps=eps, running=(0.0, deviation**2), training=training, asked=asked
    ).group
    return ratio_of(answer, deviation)


def ratio_of(answer: np.ndarray, deviation: float) -> float:
    """y divided by x on a witness group. Raises UnclearAnswer if that is not a single number."""
    factors = answer / (PATTERN * deviation)
    middle = float(np.median(factors))
    if not np.all(np.isfinite(factors)) or np.ptp(factors) > 0.25 * abs(middle) or middle <= 0:
        raise UnclearAnswer(f"y is {_shown(answer)} on x = {_shown(PATTERN * deviation)}")
    return middle


def fit(bench: Bench, *, training: bool = True) -> Fit:
    """The candidate that the witnesses fit. Raises UnclearAnswer if none does."""
    measured = tuple(factor_at(bench, s, e, training=training) for s, e in _WITNESSES)
    best: Fit | None = None
    for placement in PLACEMENTS:
        for divisor in _DIVISORS:
            root = math.sqrt(divisor)
            distances = [
                abs(f / placement.factor(s * root, e) - 1) for (s, e), f in zip(_WITNESSES, measured, strict=True)
            ]
            if best is None or max(distances) < best.distance:
                best = Fit(placement, divisor, max(distances), measured)
    assert best is not None
    # On some witness, candidates are at least 2% apart. That leaves room for an approximate root (12 bits), and for a
    # computation in 16 bits.
    if best.distance > max(2.0**-10, 4 * bench.format.unit_roundoff):
        raise UnclearAnswer(f"fits no named formula; the nearest is {best.placement.name}, {best.distance:.1%} off")
    return best


def placement_of(bench: Bench) -> Fit:
    """The candidate in training, worked out once."""
    return bench.once("placement", fit)


def _shown(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in values) + "]"
