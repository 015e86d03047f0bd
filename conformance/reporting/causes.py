"""Causes, above the violations: what the author of the target did wrong, and which violations that explains."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..diagnosis.cause import Cause
from ..judging.verdicts import Result
from ..results.outcome import Outcome
from .layout import print_prose
from .wording import title

#: The words before a description without a name.
_NAMELESS = "No single known mistake matches. "

#: Shown where no script was asked for. pytest prints it too, and has no such option.
_NOT_ASKED = "normspec check --reproduce DIR writes one that needs no normspec"


def print_causes(report: Outcome, console: Console) -> None:
    """Print a paragraph for each mistake."""
    for cause in report.causes:
        console.print()
        where = ", ".join(cause.dtypes) if cause.bindings == (cause.target,) else f"{', '.join(cause.bindings)}"
        print_prose(
            Text.assemble("" if cause.is_known else _NAMELESS, (cause.sentence, "bold"), f" ({cause.op}; {where})"),
            console,
            indent=7,
            first=Text("Cause:", style="bold"),
        )
        rows = [("right", remedy(cause)), ("breaks", ", ".join(cause.explains))]
        rows += [("fault", _named(cause))] if cause.faults else []
        rows.append(("script", script_of_cause(report, cause) or _NOT_ASKED))
        for label, text in rows:
            print_prose(Text(text), console, indent=11, first=Text(f"  {label}", style="dim"))


def script_of_cause(report: Outcome, cause: Cause) -> str:
    """The file of the script that shows a cause, or why it was not written; empty if no script was asked for."""
    for one in report.reproducers:
        same = (one.target, one.op, one.fault) == (cause.target, cause.op, cause.name)
        if same and one.requirement in cause.explains:
            return one.file or f"none: {one.why_not}"
    return ""


def scripts_without_cause(report: Outcome) -> dict[str, str]:
    """By requirement: the script that shows a violation without a cause, or why it was not written."""
    return {one.requirement: one.file or f"none: {one.why_not}" for one in report.reproducers if not one.fault}


def without_cause(report: Outcome) -> list[Result]:
    """The violations of a report that no cause explains and that follow from no other."""
    explained = {id(one) for one in report.failures() for cause in report.causes if cause.explains_result(one)}
    return [one for one in independent_violations(report) if id(one) not in explained]


def remedy(cause: Cause) -> str:
    """The right way, with the requirement and errata that state it."""
    also = f"; {', '.join(cause.errata)}" if cause.errata else ""
    return f"{cause.remedy} ({cause.requirement}, {title(cause.requirement)}{also})"


def _named(cause: Cause) -> str:
    first = f"normspec explain {cause.faults[0]}"
    if len(cause.faults) == 1:
        return first
    return f"{first}; no case tells it from {' and '.join(cause.faults[1:])}"


def independent_violations(report: Outcome) -> Sequence[Result]:
    """The violations that are told one by one: those that do not follow from others."""
    return [result for result in report.failures() if not result.follows_from]


def unexplained_consequences(report: Outcome) -> Sequence[Result]:
    """The violations that follow from others and that no cause explains."""
    return [result for result in report.failures() if result.follows_from and result.diagnosis is None]
