"""
A report for a job of GitHub Actions: annotations at the lines that define the targets, and a job summary.

Workflow commands have the form of GitHub's documentation, `::error file=F,line=1,title=T::message`, with the escapes of
its toolkit. https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from ..results.outcome import Outcome
from .causes import remedy_rows, without_cause
from .conclusion import target_conclusion
from .failures import shown_violations
from .in_short import in_one_line
from .located import definition, heading
from .wording import title

#: GitHub shows ten errors and ten warnings of a step, and drops the others without a word.
_MOST = 10


def workflow_commands(report: Outcome, workspace: str = "") -> list[str]:
    """
    The workflow commands of a report: an error for each cause and each violation without one, a warning for advice.

    ``workspace``: the folder of the repository, to which file names are relative; by default the working directory.
    """
    return [*_commands("error", _errors, report, workspace), *_commands("warning", _warnings, report, workspace)]


#: The title of an annotation, and its lines.
Annotation = tuple[str, list[str]]


def _commands(
    kind: str, annotations: Callable[[Outcome], Iterator[Annotation]], report: Outcome, workspace: str
) -> list[str]:
    """The commands for the annotations of each target: as many as GitHub shows."""
    commands = [
        _command(kind, report, name, about, told, workspace)
        for name in report.targets
        for about, told in annotations(report.target(name))
    ]
    if len(commands) <= _MOST:
        return commands
    rest = f"::{kind} title=normspec::and {len(commands) - _MOST + 1} more: the job summary and the report have them"
    return [*commands[: _MOST - 1], rest]


def _errors(alone: Outcome) -> Iterator[Annotation]:
    for cause in alone.causes:
        told = [f"{cause.sentence} ({cause.op} of {cause.target}; {', '.join(cause.dtypes)})"]
        told += [f"{label}: {words}" for label, words in remedy_rows(cause)]
        told += [f"more: normspec explain {cause.faults[0]}"] if cause.faults else []
        yield f"{cause.requirement} {title(cause.requirement)}", told
    for found in shown_violations(without_cause(alone)):
        yield heading(found.clearest), [in_one_line(found.clearest)]
    for one in alone.unmet():
        yield f"{one.requirement} is expected to fail", [f"{one.wrong}", f"reason: {one.reason}"]
    if alone.exit_status not in (0, 1):
        yield "not judged", [target_conclusion(alone)[0]]


def _warnings(alone: Outcome) -> Iterator[Annotation]:
    for found in shown_violations(alone.advice()):
        yield f"advice: {heading(found.clearest)}", [in_one_line(found.clearest)]


def _command(kind: str, report: Outcome, name: str, about: str, told: list[str], workspace: str) -> str:
    """One workflow command, at the line that defines the target if there is one."""
    place, properties = definition(report, name), {"title": f"{name}: {about}"}
    if place is not None:
        properties = {"file": _in_repository(place[0], workspace), "line": str(place[1]), **properties}
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    message = _data("\n".join(told))
    return f"::{kind} {written}::{message}"


def _in_repository(file: str, workspace: str) -> str:
    """A file's name as GitHub writes it: relative to the repository, with slashes."""
    whole, root = os.path.realpath(file), os.path.realpath(workspace or os.curdir)
    inside = os.path.relpath(whole, root) if whole.startswith(root + os.sep) else file
    return inside.replace(os.sep, "/")


def _data(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    return _data(words).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def commands_stopped(stream: TextIO) -> Iterator[None]:
    """What is printed here stands between commands that keep GitHub from obeying what a target prints."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", file=stream, flush=True)
    try:
        yield
    finally:
        print(f"\n::{token}::", file=stream, flush=True)
