"""`normspec identify`: the card of one implementation, sound or not."""

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
@click.argument("target", metavar="TARGET")
@click.option(
    "--op", "ops", multiple=True, metavar="OP", help="An operator; by default those that the target implements."
)
@framework_option
@click.option(
    "--dtype",
    default="float32",
    show_default=True,
    metavar="D",
    help="The dtype of all lines that are not about a particular dtype.",
)
@device_option
@python_option
@time_limit_option
@memory_limit_option
@config_option
@click.option("--all-bindings", is_flag=True, help="Measure every binding of an operator, not only the first.")
@click.option("--brief", is_flag=True, help="Leave out how each line is established.")
@click.option("--json", "json_file", metavar="FILE", help="Write the card with its evidence; - for standard output.")
@click.pass_context
def identify(
    context: click.Context,
    target: str,
    ops: tuple[str, ...],
    framework: str | None,
    dtype: str,
    pythons: tuple[str, ...],
    config: str | None,
    all_bindings: bool,
    brief: bool,
    json_file: str | None,
    **_: Any,  # configurable options are read from the context
) -> int:
    """Find out which normalisation an implementation is.

    TARGET is what `normspec check` takes. The card says where eps is added and its effective value, which variance,
    axes, gain and running statistics are used, how accurate the results are, what is rounded to 16 bits, which
    derivatives there are, and how NaN, infinity, empty and constant groups are treated. Each line names the measurement
    behind it. Nothing is judged.

    Exit status: 0 everything was established, 2 nothing was, 3 only a part.
    """
    from ..identify.identifying import identify as identified
    from ..reporting.card import print_identification

    configured = configuration(config)
    if json_file is not None:
        ensure_writable(json_file)
    paths = interpreters(pythons, configured)
    operators = tuple(dict.fromkeys(ops)) or None
    names = targets_to_check((target,), pythons, paths, configured, operators)
    with contextlib.redirect_stdout(sys.stderr), progress_on() as listener:  # a target's prints are not the card's
        found = identified(
            names,
            op=operators,
            dtype=dtype,
            device=setting(context, configured, "device"),
            framework=framework,
            all_bindings=all_bindings,
            python=paths or None,
            time_limit=setting(context, configured, "time-limit"),
            memory_limit=setting(context, configured, "memory-limit"),
            progress=listener,
        )
    print_identification(found, console_on(sys.stderr if json_file == STDOUT else sys.stdout), brief=brief)
    return status_after_writing(found.exit_status, json_file, found.to_json)
