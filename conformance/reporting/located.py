"""Where a target is defined, and one violation of it as plain text: for readers that are no terminal."""

from __future__ import annotations

from ..judging.verdicts import Result
from ..results.outcome import Outcome
from .failures import Finding, detail_rows
from .wording import sentence, title


def definition(report: Outcome, target: str, binding: str = "") -> tuple[str, int] | None:
    """The file and line that define a target, or one binding of it; None for what a framework defines."""
    for subject in report.subjects:
        if subject.get("target") == target and binding in ("", subject.get("binding")) and subject.get("file"):
            return str(subject["file"]), int(subject["line"])
    return None


def definition_in_words(report: Outcome, target: str) -> str:
    """The same as `mine.py:3`; empty for what a framework defines."""
    found = definition(report, target)
    return f"{found[0]}:{found[1]}" if found else ""


def heading(result: Result) -> str:
    """The requirement of a result with its title."""
    return f"{result.requirement} {title(result.requirement)}".strip()


def violation_in_text(report: Outcome, result: Result) -> str:
    """All that a terminal says of one violation, line by line: its cause, its sentence, and the case that shows it."""
    lines = [f"Cause: {cause.sentence}" for cause in report.causes if cause.explains_result(result)]
    lines += [words] if (words := sentence(result.requirement)) else []
    rows = detail_rows(Finding(result.requirement, (result,)), {})
    if where := definition_in_words(report, result.target):
        rows.append(("defined", where))
    wide = max(len(label) for label, _ in rows)
    return "\n".join([*lines, *(f"{label:{wide}}  {text}" for label, text in rows)])
