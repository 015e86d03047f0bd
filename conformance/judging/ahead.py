"""Truths made ahead, while a worker imports its target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...reference.accuracy import Arithmetic
from .composed_truth import ComposedTruth
from .truth import Truth


def truth_steps(truth: Truth | ComposedTruth, arithmetic: Arithmetic, *, gradients: bool) -> Iterator[bool]:
    """Make the exact values and envelopes that every case needs, one by one, each in a few milliseconds."""
    with np.errstate(all="ignore"):
        names = list(truth.outputs())
    yield True
    if gradients:
        with np.errstate(all="ignore"):
            names += [name for name, value in truth.gradients().items() if value is not None]
        yield True
    for name in names:
        with np.errstate(all="ignore"):
            truth.bound(name, arithmetic, None, range_rule=True)
        yield True
