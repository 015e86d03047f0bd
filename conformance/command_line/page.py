"""`normspec page`: reports that `--json` wrote, as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from ..page.jinja import ensure_jinja
from .destination import ensure_not_read, ensure_writable, write


@click.command(short_help="Make one HTML page of several reports.")
@click.argument("reports", metavar="REPORT.json...", nargs=-1, required=True)
@click.option(
    "--out", required=True, metavar="FILE", help="The page to write, such as page.html; - for standard output."
)
def page(reports: tuple[str, ...], out: str) -> int:
    """
    Make one page of reports: tables with filters, and behind each cell what was found.

    REPORT.json is what `normspec check --json` wrote. The page is one file that needs no network; it takes Jinja2.
    """
    from ..page.page import page_of_reports
    from ..replay.loading import load_report

    ensure_jinja()
    ensure_not_read([("--out", out)], reports)
    ensure_writable(out, "--out")
    names = [Path(file).name for file in reports]
    text = page_of_reports(
        {file if names.count(name) > 1 else name: load_report(file) for file, name in zip(reports, names, strict=True)}
    )
    write(out, text, "--out")
    return 0
