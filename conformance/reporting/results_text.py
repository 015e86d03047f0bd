"""Some results alone: the cause, the violations, and the smallest case, without a table above them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..judging.verdicts import Result
from ..results.outcome import Outcome
from .causes import print_causes
from .failures import print_failures
from .layout import console_on
from .render import TextStream
from .symbols import symbols_for


def results_text(report: Outcome, results: Sequence[Result]) -> str:
    """A report's text about these results, all of one requirement, without colour."""
    stream = TextStream("utf-8")
    console, symbols = console_on(stream), symbols_for("utf-8")
    causes = tuple(one for one in report.causes if any(one.explains_result(result) for result in results))
    print_causes(attrs.evolve(report, results=tuple(results), causes=causes), console)
    print_failures([attrs.evolve(one, same_case_as="") for one in results], console, symbols)
    return "\n".join(stream.getvalue().strip("\n").splitlines())
