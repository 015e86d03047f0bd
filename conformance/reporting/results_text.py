"""Some results alone: the cause, the violations, and the smallest case, without a table above them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from rich.console import Console

from ..judging.verdicts import Result
from ..results.outcome import Outcome
from .causes import print_causes
from .failures import print_failures
from .render import printed, without_edges
from .symbols import symbols_for


def results_text(report: Outcome, results: Sequence[Result]) -> str:
    """A report's text about these results, all of one requirement, without colour."""
    causes = tuple(one for one in report.causes if any(one.explains_result(result) for result in results))

    def show(console: Console) -> None:
        print_causes(attrs.evolve(report, results=tuple(results), causes=causes), console)
        print_failures([attrs.evolve(one, same_case_as="") for one in results], console, symbols_for("utf-8"))

    return without_edges(printed(show, "utf-8"))
