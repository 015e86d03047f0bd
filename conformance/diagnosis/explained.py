"""The report with what would excuse its violations, and with what caused them."""

from __future__ import annotations

from ..engine.declaration_search import with_passing_declarations
from ..engine.engine import Run
from ..results.report import Report
from .causes import diagnosed


def explained(run: Run, report: Report) -> Report:
    """The report with the declarations under which bindings would conform, and the causes of its violations."""
    return diagnosed(run, with_passing_declarations(run, report))
