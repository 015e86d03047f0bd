"""`normspec check`: judge targets, print the report, and end with its exit status."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ...adapters.conventions import parse_conventions
from ..reporting import print_report, report_to_json
from ..verdicts import Report
from .console import console_on, progress_on
from .destination import STDOUT, UnwritableFile, ensure_writable, write
from .options import dtype_option, profile_option, seed_option


def run_targets(targets: Sequence[str], ops: Sequence[str], options: Mapping[str, Any]) -> Report:
    """Check these targets (none named: everything that is installed), all of them or none."""
    from ...adapters.targets import installed
    from ..api import check as check_targets

    op = None if not ops else tuple(dict.fromkeys(ops))
    with progress_on() as listener:
        return check_targets(tuple(targets) or installed(), op=op, progress=listener, **options)


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--op", "ops", multiple=True, metavar="OP", help="An operator, such as highway; repeat for several.")
@click.option("--framework", metavar="NAME", help="Whose tensors your function takes: numpy, torch.")
@dtype_option
@click.option("--device", default="cpu", show_default=True, metavar="DEV", help="Where to run: cpu, cuda, cuda:1.")
@click.option(
    "--convention",
    "conventions",
    multiple=True,
    metavar="KEY=VALUE",
    help="Declare a choice your function makes, such as momentum=old; repeat for several.",
)
@profile_option("standard")
@seed_option
@click.option("--forward-only", is_flag=True, help="Your function has no gradients by design: call them unsupported.")
@click.option("--json", "json_file", metavar="FILE", help="Write the whole report as JSON; - for standard output.")
def check(
    targets: tuple[str, ...],
    ops: tuple[str, ...],
    framework: str | None,
    dtypes: tuple[str, ...],
    device: str,
    conventions: tuple[str, ...],
    profile: str,
    seed: int | None,
    forward_only: bool,
    json_file: str | None,
) -> int:
    """Check targets: a framework's own layers, or your function.

    TARGET is numpy, torch, FILE.py:NAME or package.module:NAME. Without one, everything installed is checked.

    Exit status: 0 conforms, 1 a MUST is violated, 2 nothing could be checked, 3 checked only in part.
    """
    if json_file is not None:
        ensure_writable(json_file)
    options = {
        "framework": framework,
        "dtypes": tuple(dict.fromkeys(dtypes)) or None,
        "device": device,
        "conventions": parse_conventions(conventions) or None,
        "profile": profile,
        "seed": seed,
        "forward_only": forward_only,
    }
    with contextlib.redirect_stdout(sys.stderr):  # what a target prints must not end up in the report
        report = run_targets(targets, ops, options)
    # With the JSON on stdout, the table goes where it cannot spoil it.
    print_report(report, console_on(sys.stderr if json_file == STDOUT else sys.stdout))
    if json_file == STDOUT:
        click.echo(report_to_json(report), nl=False)
    elif json_file is not None:
        try:
            write(json_file, report_to_json(report))
        except UnwritableFile as error:
            # The verdict stands; that it could not be kept is told, and outranks a conforming one.
            click.echo(f"normspec: {error}", err=True)
            return report.exit_status or 2
    return report.exit_status
