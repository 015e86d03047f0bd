"""Truths made ahead, while the target is busy: otherwise this process would only wait for the target's worker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from ...reference.accuracy import Arithmetic
from ..cases.description import Description
from .composed_truth import ComposedTruth
from .library import Library
from .subject import Subject
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


@attrs.define
class TruthsAhead:
    """The truths of the cases that a subject has yet to run."""

    subject: Subject
    cases: Sequence[Description]
    library: Library
    #: How many of the cases have run or are running.
    reached: int = 0

    def steps(self) -> Iterator[bool]:
        """Make them one by one, in the order in which the cases run."""
        with contextlib.suppress(Exception):  # a defect of normspec: it shows again when the case is judged
            for place, description in enumerate(self.cases):
                # A step on a large case would take long, and its truth much memory.
                if place < self.reached or description.large:
                    continue
                case = self.library.case(description)
                yield True
                truth, arithmetic = self.subject.truth(case), self.subject.arithmetic(case)
                yield from truth_steps(truth, arithmetic, gradients=not self.subject.forward_only)
