"""Calls that a target may refuse, or has to."""

from __future__ import annotations

import numpy as np

from ...spec.errors import CannotVary, TargetRaised, Unsupported
from ..cases.case import Case
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
