"""eps: its default, where it stands, whether it is used as given, and what becomes of zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...spec.errors import TargetRaised
from .bench import PATTERN, Bench
from .decimals import shortest
from .failing import ByCaller, UnclearAnswer
from .placement import PLACEMENTS, Fit, Placement, factor_at, fit, placement_of, ratio_of
from .probe import BLOCKS, NORMALISATIONS, probe
from .table import Cell


@probe("default_eps", "default eps")
def default_eps(bench: Bench) -> Cell:
    """
    Solves for eps from a call without eps, on a group whose variance is far smaller than eps.

    It does so in the widest dtype, where eps is known best, and in the table's own, on which eps may depend.
    """
    fixed = bench.binding.fixed.eps
    if fixed is not None:
        return Cell(f"{fixed:g}", evidence={"eps": fixed, "fixed": True})
    if bench.binding.defaults is None:
        raise ByCaller(f"{bench.binding.name} has no default eps")
    found = placement_of(bench).placement
    if found.solve is None:
        raise UnclearAnswer("eps is not used")
    wide = bench.widest
    eps, text, _ = _default(wide, placement_of(bench))
    evidence: dict[str, Any] = {"eps": eps, "placement": found.words(bench.record), "dtype": wide.dtype}
    if bench.format.smallest_normal < found.measured_at:  # float16 has no group that is so small
        own, its_text, tolerance = _default(bench, placement_of(bench))
        if abs(own - eps) > tolerance * max(own, eps):
            text = f"{its_text}; {text} in {wide.dtype}"
            evidence[f"eps in {bench.dtype}"] = own
    return Cell(text, evidence=evidence)


def _default(bench: Bench, known: Fit) -> tuple[float, str, float]:
    """The default in the bench's dtype, its text, and its largest relative error."""
    deviation = known.placement.measured_at
    factor = ratio_of(bench.with_defaults(bench.case([PATTERN * deviation])).group, deviation)
    eps = known.placement.solved(deviation * math.sqrt(known.divisor), factor)
    # The largest error of the solution: a few roundings of the dtype, and the rounding of eps to float32.
    tolerance = max(64 * bench.format.unit_roundoff, 2.0**-22)
    # Near zero, the solution is a difference of terms at most as large as the deviation, or as its inverse if it is
    # large.
    text = shortest(eps, tolerance) if eps > tolerance * min(deviation, 1 / deviation) else "0"
    return eps, text, tolerance


@probe("eps_placement", "place of eps", (*NORMALISATIONS, *BLOCKS))
def eps_placement(bench: Bench) -> Cell:
    """Finds the formula that fits witnesses with variances of about eps; for batch_norm in inference too."""
    bench.ensure_free_eps()
    found = placement_of(bench)
    evidence = {"factors": list(found.measured), "distance": found.distance}
    text = found.placement.words(bench.record)
    if bench.record.has_modes:
        other = fit(bench, training=False)
        evidence |= {"inference": {"factors": list(other.measured), "distance": other.distance}}
        if other.placement != found.placement:
            text = f"{text}; in inference {other.placement.words(bench.record)}"
    return Cell(text, evidence=evidence)


#: Values given for eps, from ordinary ones to one that a floor would hide.
_GIVEN = (2.0**-10, 1e-5, 1e-8)
#: Tolerance for two numbers that agree in three digits.
_THREE_DIGITS = 2.0**-10


@probe("eps_effective", "eps in effect")
def eps_effective(bench: Bench) -> Cell:
    """Solves for three eps from 1e-3 to 1e-8, each on groups of two deviations, in the widest dtype."""
    wide, given = bench.widest, _GIVEN
    for placement, divisor in _candidates(bench):
        used = []
        for eps in given:
            found = [
                placement.solved(deviation * math.sqrt(divisor), factor_at(wide, deviation, eps))
                for deviation in (placement.measured_at, placement.measured_near(eps))
            ]
            if not abs(found[0] - found[1]) <= _THREE_DIGITS * abs(found[0]):
                break  # the formula is another one
            used.append(found[0])
        else:
            if not any(used):
                break
            words = placement.words(bench.record)
            evidence = {"given": list(given), "used": used, "placement": words, "dtype": wide.dtype}
            return Cell(_in_effect(used), evidence=evidence)
    if _is_ignored(bench):
        raise UnclearAnswer("eps is not used")
    raise UnclearAnswer("no formula gives the same eps for groups of two deviations")


def _candidates(bench: Bench) -> list[tuple[Placement, float]]:
    """Where eps may be, and the divisor of the variance: as found, or else every place."""
    try:
        known = placement_of(bench)
    except UnclearAnswer:
        return [(one, 1.0) for one in PLACEMENTS if one.solve is not None]
    # An eps of the target's own may be too small to show where its place was looked for.
    place = PLACEMENTS[0] if known.placement.solve is None else known.placement
    return [(place, known.divisor)]


def _is_ignored(bench: Bench) -> bool:
    """Whether the eps that is given shows nowhere."""
    with suppress(UnclearAnswer):
        return placement_of(bench).placement.solve is None
    return False


def _in_effect(used: Sequence[float]) -> str:
    shares = [one / given for one, given in zip(used, _GIVEN, strict=True)]
    if all(abs(one - 1) < _THREE_DIGITS for one in shares):
        return "as given"
    if not all(math.isfinite(one) for one in used):
        raise UnclearAnswer(f"it is {', '.join(f'{one:g}' for one in used)}")
    if max(used) - min(used) <= _THREE_DIGITS * max(used):
        return f"{used[0]:.3g} whatever is given"
    if max(shares) - min(shares) <= _THREE_DIGITS * max(shares):
        return f"{shares[0]:.3g} times what is given"
    return "; ".join(
        f"{one:.3g} for {given:.3g}"
        for one, given in zip(used, _GIVEN, strict=True)
        if abs(one / given - 1) >= _THREE_DIGITS
    )


#: No float32: it lies half-way between two, so that rounding moves it by 2^-25 of itself.
_BETWEEN = 2.0**-16 * (1 + 2.0**-24 + 2.0**-30)


@probe("eps_float32", "eps in float64", dtype="float64")
def eps_float32(bench: Bench) -> Cell:
    """Compares the target with itself: whether y differs between an eps and its float32 neighbour."""
    bench.ensure_free_eps()
    rounded = float(np.float32(_BETWEEN))
    given, near, far = (factor_at(bench, 2.0**-20, eps) for eps in (_BETWEEN, rounded, 4 * rounded))
    if abs(given / far - 1) < 2.0**-8:
        raise UnclearAnswer("eps shows nowhere")
    moved = abs(given / near - 1)
    # In exact arithmetic the two differ by at least 2^-26; repeated calls may differ by about 2^-52.
    text = "as given" if moved > 2.0**-38 else "rounded to float32"
    return Cell(text, evidence={"eps": _BETWEEN, "moved": moved})


@probe("eps_zero", "eps = 0", (*NORMALISATIONS, *BLOCKS))
def eps_zero(bench: Bench) -> Cell:
    """
    Finds the eps that is used in place of 0, if one is, from a group with a variance.

    It also tells what becomes of a group without variance, or of zeros.
    """
    bench.ensure_free_eps()
    deviation = 2.0**-6 if bench.format.name == "float16" else 2.0**-12
    known = placement_of(bench)
    factor = factor_at(bench, deviation, 0.0, asked=True)
    used, text, divided = 0.0, "as given", deviation * math.sqrt(known.divisor)
    # The factor of one group is off by a few roundings.
    if abs(factor / known.placement.factor(divided, 0.0) - 1) > 16 * bench.format.unit_roundoff:
        if known.placement.solve is not None:
            used = known.placement.solved(divided, factor)
        if not used > 0:
            raise UnclearAnswer("no eps explains the result")
        text = f"taken as {shortest(used, 2.0**-6)}"
    record = bench.record
    beta = 0.5 if bench.takes("beta") else 0.0
    alike, left = "constants" if record.centred else "zeros", "beta" if beta else "0"
    group = np.full(4, 3.0 if record.centred else 0.0)
    try:
        y = bench.call([group], eps=0.0, gamma=1.5, beta=beta, asked=True).group
    except TargetRaised as raised:
        return Cell(f"{text}; {alike} raise", evidence={"eps": used, "reason": str(raised)})
    if np.all(np.isnan(y)):
        becomes = "NaN"
    else:
        becomes = left if np.all(y == beta) else f"neither NaN nor {left}"
    return Cell(f"{text}; {alike} {becomes}", evidence={"eps": used, "constant": [float(v) for v in y]})
