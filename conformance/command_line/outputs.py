"""What `normspec check` writes beside what it prints: each file is asked for by an option of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import click

from ..report import Report
from .destination import STDOUT, UnwritableFile, ensure_writable, write


@attrs.frozen
class Output:
    """A file that a run is asked for."""

    #: The option that asks for it.
    option: str
    #: The name of the file, or that of standard output.
    name: str
    #: What makes the text of a report.
    text: Callable[[Report], str]


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name files, those above first in the help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--json", "json_file", metavar="FILE", help="Write the whole report as JSON; - for standard output."),
    click.option("--junit", "junit_file", metavar="FILE", help="Write JUnit's XML, which CI systems read."),
)


def outputs_of(given: Mapping[str, Any]) -> list[Output]:
    """
    The files that a run is asked for.

    Raises UnwritableFile where one of them could not be written, and UsageError where two are one.
    """
    texts: list[tuple[str, Callable[[Report], str]]] = [("json", Report.to_json), ("junit", Report.to_junit)]
    found = [
        Output(f"--{key}", given[f"{key}_file"], text) for key, text in texts if given.get(f"{key}_file") is not None
    ]
    for one in found:
        ensure_writable(one.name, one.option)
    for name, count in Counter(one.name for one in found).items():
        if count > 1:
            options = " and ".join(one.option for one in found if one.name == name)
            raise click.UsageError(f"{options} name one place, {name}: give each its own")
    return found


def write_outputs(report: Report, outputs: Iterable[Output]) -> list[str]:
    """Write each; the reasons why some could not be."""
    unwritten = []
    for one in outputs:
        text = one.text(report)
        if one.name == STDOUT:
            click.echo(text, nl=False)
            continue
        try:
            write(one.name, text, one.option)
        except UnwritableFile as error:
            unwritten.append(str(error))
    return unwritten


def on_stdout(outputs: Sequence[Output]) -> bool:
    """Whether one of them goes to standard output, where nothing else then may stand."""
    return any(one.name == STDOUT for one in outputs)
