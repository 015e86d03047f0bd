"""`normspec identify`: the card of one implementation, sound or not."""

from __future__ import annotations

from typing import Any

import click

from ..reporting.layout import console_on
from . import completing
from .destination import status_after_writing, text_stream
from .measuring import measured, measuring_options
from .sections import SectionedCommand


@click.command(cls=SectionedCommand)
@click.argument("target", metavar="TARGET", shell_complete=completing.TARGETS)
@measuring_options("those that the target implements", "line")
@click.option("--brief", is_flag=True, help="Leave out how each line is established.")
@click.option("--json", "json_file", metavar="FILE", help="Write the card with its evidence; - for standard output.")
@click.pass_context
def identify(context: click.Context, target: str, brief: bool, **given: Any) -> int:
    """Find out which normalisation an implementation is.

    TARGET is what `normspec check` takes. The card says where eps is added and its effective value, which variance,
    axes, gain and running statistics are used, how accurate the results are, what is rounded to 16 bits, which
    derivatives there are, and how NaN, infinity, empty and constant groups are treated. Each line names the measurement
    behind it. Nothing is judged.

    Exit status: 0 something was established, 2 nothing was, 3 a target was lost on the way.
    """
    from ..identify.identifying import identify as identified
    from ..reporting.card import print_identification

    found, json_file = measured(identified, context, (target,), given), given["json_file"]
    print_identification(found, console_on(text_stream(json_file)), brief=brief)
    return status_after_writing(found.exit_status, json_file, found.to_json)
