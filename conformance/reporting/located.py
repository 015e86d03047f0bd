"""Where a target is defined, and one of its violations as plain text, for readers other than a terminal."""

from __future__ import annotations

from ..judging.verdicts import Result
from ..results.outcome import Outcome
from .failures import ShownViolation, detail_rows
from .wording import sentence, title


def definition(report: Outcome, target: str, binding: str = "") -> tuple[str, int] | None:
    """The file and line that define a target, or one binding of it; None if a framework defines it."""
    for subject in report.subjects:
        file, line = subject.get("file"), subject.get("line")
        if subject.get("target") == target and binding in ("", subject.get("binding")) and file and line is not None:
            return str(file), int(line)
    return None


def definition_in_words(report: Outcome, target: str) -> str:
    """The same in the form `mine.py:3`; empty if a framework defines it."""
    found = definition(report, target)
    return f"{found[0]}:{found[1]}" if found else ""


def heading(result: Result) -> str:
    """The requirement of a result with its title."""
    return f"{result.requirement} {title(result.requirement)}".strip()


def violation_in_text(report: Outcome, result: Result) -> str:
    """All that a terminal shows of one violation, line by line: its cause, its sentence, and the case that shows it."""
    lines = [f"Cause: {cause.sentence}" for cause in report.causes if cause.explains_result(result)]
    lines += [words] if (words := sentence(result.requirement)) else []
    rows = detail_rows(ShownViolation(result.requirement, (result,)), {})
    if where := definition_in_words(report, result.target):
        rows.append(("defined", where))
    wide = max(len(label) for label, _ in rows)
    return "\n".join([*lines, *(f"{label:{wide}}  {text}" for label, text in rows)])
