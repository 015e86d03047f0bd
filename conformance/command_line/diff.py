"""`normspec diff`: what changed between two reports."""

from __future__ import annotations

import json

import click

from ..reporting.changes import changes_in_json, print_changes
from ..reporting.layout import console_on
from ..results.changes import changes
from .destination import ensure_not_read, ensure_writable, status_after_writing, text_stream


@click.command(short_help="Compare two reports that `normspec check --json` wrote.")
@click.argument("old", metavar="OLD.json")
@click.argument("new", metavar="NEW.json")
@click.option("--json", "json_file", metavar="FILE", help="Write what changed as JSON; - for standard output.")
def diff(old: str, new: str, json_file: str | None) -> int:
    """Compare two reports that `normspec check --json` wrote.

    It shows which targets began or ceased to conform, what is newly violated or no longer violated, causes that are new
    or gone, what is no longer judged, and errors that changed by more than a factor of two. Results are compared by
    target, operator, binding and dtype.

    Exit status: 1 if something got worse: a target no longer conforms, a MUST is newly violated, a cause is new, or
    something is no longer judged; 0 otherwise; 2 if a report cannot be read.
    """
    from ..replay.loading import load_report

    if json_file is not None:
        ensure_not_read([("--json", json_file)], [old, new])
        ensure_writable(json_file)
    found = changes(load_report(old), load_report(new))
    print_changes(found, console_on(text_stream(json_file)))

    def text() -> str:
        return json.dumps(changes_in_json(found), indent=1, allow_nan=False) + "\n"

    return status_after_writing(1 if found.regression else 0, json_file, text)
