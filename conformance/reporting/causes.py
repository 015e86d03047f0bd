"""Causes, above the violations: what the author of the target did wrong, and which violations that explains."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..diagnosis.cause import Cause
from ..judging.verdicts import Result
from ..reproduce.reproducer import Reproducer
from ..reproduce.source import can_be_imported
from ..results.outcome import Outcome
from .layout import print_prose
from .wording import title

#: Shown where no script was asked for. pytest prints it too, and has no such option.
_NOT_ASKED = "normspec check --reproduce DIR writes one that needs no normspec"


def print_causes(report: Outcome, console: Console) -> None:
    """Print a paragraph for each mistake."""
    for cause in report.causes:
        console.print()
        where = ", ".join(cause.dtypes) if cause.bindings == (cause.target,) else ", ".join(cause.bindings)
        print_prose(
            Text.assemble((cause.sentence, "bold"), f" ({cause.op}; {where})"),
            console,
            indent=7,
            first=Text("Cause:", style="bold"),
        )
        rows = remedy_rows(cause)
        rows += [("fault", _named(cause))] if cause.faults else []
        rows += [("script", told)] if (told := _script_row(report, cause)) else []
        for label, text in rows:
            print_prose(Text(text), console, indent=11, first=Text(f"  {label}", style="dim"))


def _script_row(report: Outcome, cause: Cause) -> str:
    """The script that shows a cause, why there is none, or how to get one; empty if there is nothing to say."""
    if report.reproducers:
        told = _scripts(report)
        for one in report.reproducers:
            if _is_of(one, cause):
                return told.get(one, "")
    return _NOT_ASKED if _is_of_a_function(report, cause) else ""


def _is_of(script: Reproducer, cause: Cause) -> bool:
    """Whether a script shows a cause; a cause without a name has none of its own."""
    same = (script.target, script.op, script.fault) == (cause.target, cause.op, cause.name)
    return same and script.dtype in cause.dtypes and script.requirement in cause.explains


def _is_of_a_function(report: Outcome, cause: Cause) -> bool:
    """Whether the target is a function of Python, called as its operator is, and no layer: only those get scripts."""
    named = can_be_imported(cause.target)
    layers = any(one.get("fixed") for one in report.subjects if (one["target"], one["op"]) == (cause.target, cause.op))
    return named and cause.bindings == (cause.target,) and not layers


def _scripts(report: Outcome) -> dict[Reproducer, str]:
    """The script of each reproducer, or why it was not written; a target's second of the same reason is left out."""
    found: dict[tuple[str, str], Reproducer] = {}
    for one in report.reproducers:
        found.setdefault((one.target, one.file or f"none: {one.why_not}"), one)
    return {one: words for (_, words), one in found.items()}


def scripts_without_cause(report: Outcome) -> dict[str, str]:
    """By requirement: the script that shows a violation without a cause, or why it was not written, once."""
    told = _scripts(report).items()
    return {one.requirement: words for one, words in told if not any(_is_of(one, cause) for cause in report.causes)}


def without_cause(report: Outcome) -> list[Result]:
    """The violations of a report that no cause explains and that follow from no other."""
    explained = {id(one) for one in report.failures() for cause in report.causes if cause.explains_result(one)}
    return [one for one in independent_violations(report) if id(one) not in explained]


def remedy_rows(cause: Cause) -> list[tuple[str, str]]:
    """The right way, with the requirement and errata that state it; and what the mistake breaks; each with a label."""
    also = f"; {', '.join(cause.errata)}" if cause.errata else ""
    right = f"{cause.remedy} ({cause.requirement}, {title(cause.requirement)}{also})"
    return [("right", right), ("breaks", ", ".join(cause.explains))]


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
