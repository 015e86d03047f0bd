"""`normspec compare`: what targets do where implementations differ, measured and side by side."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from ..reporting.layout import console_on
from ..requests.configuration import configuration
from .console import progress_on
from .destination import STDOUT, ensure_writable, status_after_writing
from .options import (
    config_option,
    device_option,
    framework_option,
    memory_limit_option,
    python_option,
    time_limit_option,
)
from .settings import interpreters, setting, targets_to_check


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--op", "ops", multiple=True, metavar="OP", help="An operator; layer_norm and batch_norm by default.")
@framework_option
@click.option(
    "--dtype",
    default="float32",
    show_default=True,
    metavar="D",
    help="The dtype of all rows that are not about a particular dtype.",
)
@device_option
@python_option
@time_limit_option
@memory_limit_option
@config_option
@click.option("--all-bindings", is_flag=True, help="Measure every binding of an operator, not only the first.")
@click.option("--markdown", is_flag=True, help="Print GitHub's Markdown in place of the table.")
@click.option("--json", "json_file", metavar="FILE", help="Write the table with its evidence; - for standard output.")
@click.pass_context
def compare(
    context: click.Context,
    targets: tuple[str, ...],
    ops: tuple[str, ...],
    framework: str | None,
    dtype: str,
    pythons: tuple[str, ...],
    config: str | None,
    all_bindings: bool,
    markdown: bool,
    json_file: str | None,
    **_: Any,  # configurable options are read from the context
) -> int:
    """Compare targets where implementations differ by design or by accident.

    Every cell is measured by calls of the target: eps, variance, momentum, axes, accuracy, the results for
    degenerate and special values, determinism, derivatives. Nothing is judged; `normspec check` does that. From
    [tool.normspec] in pyproject.toml it reads only interpreters, device and limits.

    Exit status: 0 measured, 2 nothing could be measured, 3 measured only in part.
    """
    from ..compare.run import compare as measure
    from ..reporting.comparison import print_comparison

    configured = configuration(config)
    if json_file is not None:
        ensure_writable(json_file)
    paths = interpreters(pythons, configured)
    names = targets_to_check(tuple(dict.fromkeys(targets)), pythons, paths, configured, ops or None)
    with contextlib.redirect_stdout(sys.stderr), progress_on() as listener:  # a target's prints are not the table's
        comparison = measure(
            names,
            op=tuple(dict.fromkeys(ops)) or None,
            dtype=dtype,
            device=setting(context, configured, "device"),
            framework=framework,
            all_bindings=all_bindings,
            python=paths or None,
            time_limit=setting(context, configured, "time-limit"),
            memory_limit=setting(context, configured, "memory-limit"),
            progress=listener,
        )
    table = sys.stderr if json_file == STDOUT else sys.stdout
    if markdown:
        click.echo(comparison.to_markdown(), nl=False, file=table)
    else:
        print_comparison(comparison, console_on(table))
    return status_after_writing(comparison.exit_status, json_file, comparison.to_json)
