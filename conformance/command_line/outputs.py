"""The files that `normspec check` writes in addition to its printed report, each with an option of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

import attrs
import click

from ..expected.drafting import drafts, table_in
from ..page.jinja import ensure_jinja
from ..reporting.github import workflow_commands
from ..reporting.layout import console_on
from ..reporting.render import as_text, print_report
from ..reproduce.reproducer import Reproducer
from ..results.report import Report
from .destination import UnwritableFile, ensure_own_places, ensure_writable, write
from .options import joined


@attrs.frozen
class Output:
    """A file that a run must write."""

    #: The option that asks for it.
    option: str
    #: The name of the file, or the name for standard output.
    name: str
    #: Makes the text from a report.
    text: Callable[[Report], str]
    #: Whether the text is appended to the file.
    append: bool = False


#: The options that name files, and what goes with them.
output_options = joined(
    click.option("--json", "json_file", metavar="FILE", help="Write the whole report as JSON; - for standard output."),
    click.option("--html", "html_file", metavar="FILE", help="Write a page with tables, plots, causes and scripts."),
    click.option("--junit", "junit_file", metavar="FILE", help="Write JUnit's XML, which CI systems read."),
    click.option(
        "--markdown", "markdown_file", metavar="FILE", help="Write GitHub's Markdown, for a comment on a pull request."
    ),
    click.option(
        "--against", metavar="OLD.json", help="An earlier report: --markdown and the job summary say what changed."
    ),
    click.option(
        "--write-expected",
        metavar="FILE",
        help="Append an entry of expected failures for everything that fails now to a normspec.toml; fill in the"
        " reasons yourself.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "github"]),
        default="text",
        show_default=True,
        help="github: annotations at the lines of the functions, and a job summary, in addition to the text.",
    ),
)


def outputs_of(given: Mapping[str, Any]) -> list[Output]:
    """
    The files that a run must write.

    Raises UnwritableFile if one of them could not be written, UsageError if two are the same or none says what changed,
    and DamagedReport if the earlier report cannot be read.
    """
    if given.get("against") is not None and given.get("markdown_file") is None and given.get("form") != "github":
        raise click.UsageError(
            "--against is about --markdown and the job summary of --format github: add one, or compare two reports"
            " with `normspec diff`"
        )
    earlier = earlier_report(given)
    texts: dict[str, Callable[[Report], str]] = {
        "json": Report.to_json,
        "html": _page,
        "junit": Report.to_junit,
        "markdown": lambda report: report.to_markdown(earlier),
    }
    found = [
        Output(f"--{key}", given[f"{key}_file"], text)
        for key, text in texts.items()
        if given.get(f"{key}_file") is not None
    ]
    if summary := _summary(given):
        found.append(Output(_SUMMARY, summary, lambda report: report.to_markdown(earlier), append=True))
    if given.get("write_expected") is not None:
        name = given["write_expected"]
        table = table_in(name)
        folder = os.path.dirname(os.path.abspath(name))
        found.append(Output("--write-expected", name, lambda report: drafts(report, folder, table), append=True))
    for one in found:
        ensure_writable(one.name, one.option, append=one.append)
    if given.get("html_file") is not None:
        ensure_jinja()
    ensure_own_places((one.option, one.name) for one in found)
    return found


#: The variable in which GitHub names the file of a job's summary.
_SUMMARY = "GITHUB_STEP_SUMMARY"


def _summary(given: Mapping[str, Any]) -> str:
    """The file of the job's summary; empty if none was asked for, or outside GitHub."""
    return os.environ.get(_SUMMARY, "") if given.get("form") == "github" else ""


def earlier_report(given: Mapping[str, Any]) -> Report | None:
    """The report to compare this run's with; None if there is none. Raises DamagedReport."""
    if given.get("against") is None:
        return None
    from ..replay.loading import load_report  # it imports the cases

    return load_report(given["against"])


def print_in_form(report: Report, form: str, stream: TextIO) -> None:
    """Print the report; for GitHub, in the width of a page, whatever it is printed on."""
    if form == "github":
        click.echo(as_text(report, getattr(stream, "encoding", None) or "utf-8"), file=stream, nl=False)
    else:
        print_report(report, console_on(stream))


def print_annotations(report: Report, stream: TextIO) -> None:
    """Print GitHub's annotations."""
    commands = workflow_commands(report, os.environ.get("GITHUB_WORKSPACE", ""))
    click.echo("".join(f"{one}\n" for one in commands), file=stream, nl=False)


def _page(report: Report) -> str:
    """The page of a report."""
    from ..page.page import page_of_reports

    return page_of_reports({"report": report})


def write_outputs(report: Report, outputs: Iterable[Output], reproducers: Sequence[Reproducer]) -> list[str]:
    """
    Write each file; return the reasons why some could not be written.

    ``reproducers``: the scripts that the page shows, which need not have been asked for.
    """
    unwritten = []
    for one in outputs:
        drawn = one.option == "--html" and reproducers
        text = one.text(attrs.evolve(report, reproducers=tuple(reproducers)) if drawn else report)
        try:
            write(one.name, text, one.option, append=one.append)
        except UnwritableFile as error:
            unwritten.append(str(error))
    return unwritten
