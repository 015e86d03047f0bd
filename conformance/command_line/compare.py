"""`normspec compare`: what targets do where implementations differ, measured and side by side."""

from __future__ import annotations

from typing import Any

import click

from ..reporting.layout import console_on
from .destination import status_after_writing, text_stream
from .measuring import measured, measuring_options


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@measuring_options("layer_norm and batch_norm", "row")
@click.option("--markdown", is_flag=True, help="Print GitHub's Markdown in place of the table.")
@click.option("--json", "json_file", metavar="FILE", help="Write the table with its evidence; - for standard output.")
@click.pass_context
def compare(context: click.Context, targets: tuple[str, ...], markdown: bool, **given: Any) -> int:
    """Compare targets where implementations differ by design or by accident.

    Every cell is measured by calls of the target: eps, variance, momentum, axes, accuracy, the results for
    degenerate and special values, determinism, derivatives. Nothing is judged; `normspec check` does that. From
    [tool.normspec] in pyproject.toml it reads only interpreters, device and limits.

    Exit status: 0 measured, 2 nothing could be measured, 3 measured only in part.
    """
    from ..compare.run import compare as measure
    from ..reporting.comparison import print_comparison

    comparison = measured(measure, context, tuple(dict.fromkeys(targets)), given)
    json_file = given["json_file"]
    table = text_stream(json_file)
    if markdown:
        click.echo(comparison.to_markdown(), nl=False, file=table)
    else:
        print_comparison(comparison, console_on(table))
    return status_after_writing(comparison.exit_status, json_file, comparison.to_json)
