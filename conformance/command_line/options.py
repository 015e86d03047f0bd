"""Options that more than one sub-command takes."""

from __future__ import annotations

import click

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="Draw the same cases again: any whole number from 0 on.",
)

dtype_option = click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    metavar="D",
    help="float16, bfloat16, float32 or float64; repeat for several. Default: all the target has.",
)


def profile_option(default: str):
    """`--profile`, with this default."""
    return click.option(
        "--profile",
        default=default,
        show_default=True,
        metavar="P",
        help="quick: a fixed deck of witnesses; standard: generated cases too; thorough: many more.",
    )
