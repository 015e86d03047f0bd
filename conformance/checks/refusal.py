"""Calls that a target may refuse, or has to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from ...spec.errors import BadOutput, BadSibling, CannotVary, TargetRaised, Unsupported
from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject


def outputs_unless_refused(subject: Subject, case: Case, mode: str = "training") -> dict[str, np.ndarray] | None:
    """
    The outputs of a call; None if the target raises, or declines the call, which counts as refusing it.

    Raises CannotVary if there is no way to make the call, so that nothing was refused.
    """
    try:
        return subject.outputs(case, mode=mode)
    except CannotVary:
        raise
    except (TargetRaised, Unsupported):
        return None


def judge_refusals(subject: Subject, calls: Iterable[tuple[str, Case]], mode: str = "training") -> Iterator[Finding]:
    """Judge whether the target raises for each of these calls; each comes with what is wrong with it."""
    calls = list(calls)
    for _, first in calls[:1]:
        subject.prefetch(first, (partial(subject.outputs, bad, mode) for _, bad in calls))
    for wrong, bad in calls:
        returned = ""
        try:
            refused = outputs_unless_refused(subject, bad, mode) is None
        except BadSibling:  # what says which calls the target takes does not know what to say of this one
            refused = True
        except BadOutput as output:
            refused, returned = False, f": {output}"
        note = f"{wrong}, and the call returned without raising{returned}"
        yield Finding(bad, violated=not refused, output="y", note=note, failure="accepts")
