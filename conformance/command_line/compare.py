"""`normspec compare`: what targets do where implementations differ, measured and side by side."""

from __future__ import annotations

from typing import Any

import click

from ..reporting.layout import console_on
from . import completing
from .destination import ensure_own_places, ensure_writable, status_after_writing, text_stream
from .measuring import measured, measuring_options
from .sections import SectionedCommand


@click.command(cls=SectionedCommand, short_help="Show where implementations differ.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=completing.TARGETS)
@measuring_options("layer_norm and batch_norm", "row")
@click.option("--json", "json_file", metavar="FILE", help="Write the table with its evidence; - for standard output.")
@click.option("--markdown", "markdown_file", metavar="FILE", help="Write GitHub's Markdown; - for standard output.")
@click.pass_context
def compare(context: click.Context, targets: tuple[str, ...], markdown_file: str | None, **given: Any) -> int:
    """Compare targets where implementations differ by design or by accident.

    Every cell is measured by calls of the target: eps, variance, momentum, axes, accuracy, the results for
    degenerate and special values, determinism, derivatives. Nothing is judged; `normspec check` does that. From
    [tool.normspec] in pyproject.toml it reads only interpreters, device and limits.

    Exit status: 0 measured, 2 nothing could be measured, 3 measured only in part.
    """
    from ..compare.run import compare as measure
    from ..reporting.comparison import print_comparison

    json_file = given["json_file"]
    files = {"--json": json_file, "--markdown": markdown_file}
    ensure_own_places((option, name) for option, name in files.items() if name is not None)
    if markdown_file is not None:
        ensure_writable(markdown_file, "--markdown")
    comparison = measured(measure, context, tuple(dict.fromkeys(targets)), given)
    print_comparison(comparison, console_on(text_stream(*files.values())))
    status = status_after_writing(comparison.exit_status, json_file, comparison.to_json)
    return status_after_writing(status, markdown_file, comparison.to_markdown, "--markdown")
