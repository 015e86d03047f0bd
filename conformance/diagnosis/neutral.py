"""Cases on which one aspect of the formula does not matter: a requirement that holds only there is about the aspect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import attrs
import numpy as np

from ...reference.formats import FORMATS
from ...spec.operators import Groups
from ..cases.case import Case
from ..checks.derived import affine_names, filled, less_value, with_parameters
from ..checks.groups import only_group

#: The largest number that a function may use in place of eps. Added to a variance larger by 1/u it is lost.
_LARGEST_EPS = 2.0**-3


@attrs.frozen
class Aspect:
    """One aspect of the formula of each normalisation."""

    requirements: tuple[str, ...]
    #: The same case without what makes the aspect matter; None if there is no such case.
    neutral: Callable[[Case], Case | None]
    #: Another such case, to judge y alone: parameters that are None have no gradients.
    neutral_in_y: Callable[[Case], Case | None] | None = None
    #: Whether the neutral case has less data. A mistake that begins at some size does not show there.
    narrows: bool = False


def _without_variance(case: Case) -> Case | None:
    """eps is so large that adding the variance changes nothing. beta is zero: it would hide what is left of y."""
    variance = float(np.max(_variances(case), initial=0.0))
    if not case.settings.get("training", True) or not variance:
        return None
    beta = case.inputs.get("beta")
    zero = {} if beta is None else {"beta": np.zeros_like(beta)}
    return case.replace(eps=variance * 4 / _unit(case), **zero)


def _without_eps(case: Case) -> Case | None:
    """eps is 0, and x so large that any number in place of eps is lost in the variance of each group."""
    found = _variances(case)
    if not case.settings.get("training", True) or not (found > 0).any():
        return None
    least = _LARGEST_EPS * 4 / _unit(case)
    power = max(0, math.ceil((math.log2(least) - math.log2(found[found > 0].min())) / 2))
    with np.errstate(over="ignore"):
        x = np.ldexp(case.x.astype(np.float64), power).astype(case.x.dtype)
    square = np.square(x.astype(np.float64))
    if not (square < FORMATS["float32" if case.x.dtype != np.float64 else "float64"].largest / x.size).all():
        return None
    return case.replace(x=x, eps=0.0)


def _of_one_group(case: Case) -> Case | None:
    """One group, in one dimension if the operator allows: it cannot be joined with another, or split."""
    if not case.layout.count or not case.layout.size:
        return None
    alone = only_group(case, 0)
    if case.record.groups is Groups.CHANNEL:
        return alone.replace(x=alone.x.reshape(-1, 1), g=alone.g.reshape(-1, 1), channel_axis=1)
    if case.record.groups is Groups.SAMPLE_CHANNELS:
        return alone
    flat = {name: None if value is None else value.reshape(-1) for name, value in alone.inputs.items()}
    return alone.replace(**flat, g=alone.g.reshape(-1), axes=(-1,))


#: The aspects for which a neutral case exists.
ASPECTS = (
    Aspect(("LN-F2", "BN-F2", "RM-F2", "GN-F2", "IN-F2"), _without_variance),
    Aspect(("LN-F3", "BN-F3", "RM-F3", "GN-F3", "IN-F3"), _without_eps),
    Aspect(("LN-F4", "BN-F4", "RM-F4", "GN-F4", "IN-F4"), _without_eps),
    Aspect(
        ("LN-F5", "BN-F5", "RM-F5", "GN-F5", "IN-F5"),
        lambda case: with_parameters(case, 1, 0),
        lambda case: case.replace(**dict.fromkeys(affine_names(case))),
    ),
    Aspect(("LN-F6", "BN-F6", "RM-F6", "GN-F6", "IN-F6"), filled),
    Aspect(("LN-F7", "BN-F7", "RM-F7", "GN-F7", "IN-F7"), _of_one_group, narrows=True),
    Aspect(("LN-F8", "BN-F8", "GN-F8", "IN-F8"), lambda case: less_value(case, 0)),
)


def neutral(case: Case, aspects: Iterable[Aspect], *, in_y: bool) -> Case | None:
    """
    The case on which none of these aspects matters; None if it cannot be made.

    ``in_y``: the case need only be good for judging y.
    """
    for aspect in aspects:
        make = aspect.neutral_in_y if in_y and aspect.neutral_in_y is not None else aspect.neutral
        made = make(case)
        if made is None:
            return None
        case = made
    return case


def _variances(case: Case) -> np.ndarray:
    """The variance of each group, or the mean square for an operator that does not centre."""
    rows = case.layout.rows(case.x).astype(np.float64)
    if case.record.centred:
        rows = rows - rows.mean(axis=1, keepdims=True)
    return np.square(rows).mean(axis=1)


def _unit(case: Case) -> float:
    return FORMATS[case.x.dtype.name].unit_roundoff
