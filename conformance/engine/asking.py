"""Questions to a target after its report is known: why it is wrong, and what it would have to declare."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from ...adapters.target import Target
from ..results.report import Report


def asking(target: Target, report: Report) -> AbstractContextManager[None]:
    """
    The context of such questions.

    A target that was lost may be lost again, or take its whole time limit for each answer. If it is, it is asked
    nothing further, and TargetLost is raised.
    """
    return target.unreplaced() if target.name in report.lost else nullcontext()
