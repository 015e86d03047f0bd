"""Cases that tell apart conditions which the cases of a violation satisfy at once."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from ...spec.operators import OPERATORS
from ..cases.case import Case
from ..cases.description import Description

#: The running statistics of a new layer, and those with one of the two alone.
_MEANS_AND_VARIANCES = ((0, 1), (0, 2), (1, 1))
#: How far apart the cotangents of two groups are, in binary digits: few enough to show both in a dtype of 16 bits.
_COTANGENTS_APART = 7
#: The exponents of the larger ones: each, so that any limit lies between the two of some pair, and its size is found.
_EXPONENTS = range(0, -44, -1)


def with_new_statistics(case: Case) -> Iterator[Case]:
    """The case with the running statistics of a new layer, and with its mean alone, or its variance alone."""
    for mean, variance in _MEANS_AND_VARIANCES:
        yield case.replace(
            running_mean=np.full_like(case.given("running_mean"), mean),
            running_var=np.full_like(case.given("running_var"), variance),
        )


def with_cotangents_apart(case: Case) -> Iterator[Case]:
    """The case with cotangents of two sizes, by turns from group to group: ever smaller ones."""
    rows = case.layout.rows(case.g)
    largest = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
    largest[largest == 0] = 1.0
    apart = (np.arange(len(rows)) % 2 * _COTANGENTS_APART)[:, None]
    for exponent in _EXPONENTS:
        sizes = np.ldexp(1.0, exponent - apart)
        yield case.replace(g=case.layout.back((rows / largest * sizes).astype(case.g.dtype)))


def with_another_form(shown: Description) -> Iterator[Description]:
    """The same case with or without parameters, and with another number of normalised axes."""
    record = OPERATORS[shown.operator]
    for name in ("gamma", "beta"):
        if name in record.arguments:
            drawn = "mixed" if getattr(shown, name) == "none" else "none"
            yield attrs.evolve(shown, **{name: drawn})  # type: ignore[arg-type]
    if "axes" in record.settings:
        several = len(shown.features or ()) > 1
        yield attrs.evolve(shown, features=None if several else (1, shown.n))
