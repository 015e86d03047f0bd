"""The cell for a call that gives no answer."""

from __future__ import annotations

from ...spec.errors import BadOutput, TargetLost, TargetRaised, Unsupported
from .table import BY_CALLER, Cell, Kind

#: Words for a BadOutput in a cell, by its kind.
_BAD = {
    "shape": "wrong shape",
    "dtype": "wrong dtype",
    "gradient": "no gradient",
    "type": "no tensor",
    "count": "wrong count",
}


class UnclearAnswer(Exception):
    """The target answered, but the answer does not decide the question; the message says why."""


class ByCaller(Unsupported):
    """The target has no choice of its own, because the caller gives it."""


def cell_of(failure: Exception) -> Cell:
    """The cell for a probe that ended with one of CALL_FAILED or with UnclearAnswer."""
    reason = " ".join(str(failure).split())
    if isinstance(failure, ByCaller):
        return Cell(BY_CALLER, Kind.UNSUPPORTED, {"reason": reason})
    if isinstance(failure, Unsupported):
        return Cell("unsupported", Kind.UNSUPPORTED, {"reason": reason})
    if isinstance(failure, TargetRaised):
        return Cell(f"raises {raised_name(failure)}", Kind.RAISES, {"reason": reason, "stage": failure.stage})
    if isinstance(failure, TargetLost):
        return Cell("lost", Kind.LOST, {"reason": reason})
    if isinstance(failure, BadOutput):
        return Cell(_BAD.get(failure.kind, "no result"), Kind.RAISES, {"reason": reason})
    return Cell("unclear", Kind.UNCLEAR, {"reason": reason})


def raised_name(failure: TargetRaised) -> str:
    """The type of the exception that the target raised: the first word of its message."""
    name = failure.words.partition(":")[0].strip()
    return name if name.replace(".", "").isidentifier() else "an exception"
