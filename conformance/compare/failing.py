"""What a cell says where a call did not answer."""

from __future__ import annotations

from ...spec.errors import BadOutput, TargetLost, TargetRaised, Unsupported
from .table import BY_CALLER, Cell, Kind

#: What a BadOutput is called in a cell, by its kind.
_BAD = {"shape": "wrong shape", "dtype": "wrong dtype", "gradient": "no gradient", "type": "no tensor"}


class UnclearAnswer(Exception):
    """The target answered, and the answer does not tell what was asked; the message says why."""


class ByCaller(Unsupported):
    """The target has no choice of its own: the caller gives it."""


def cell_of(failure: Exception) -> Cell:
    """The cell for a probe that ended in one of CALL_FAILED or in UnclearAnswer."""
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
    """The type of the exception that the target raised, as its words begin."""
    name = failure.words.partition(":")[0].strip()
    return name if name.replace(".", "").isidentifier() else "an exception"
