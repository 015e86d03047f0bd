"""Options that more than one sub-command takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ...spec.errors import NormspecError
from ..limits import bytes_of, seconds_of


class Limit(click.ParamType):
    """A limit, as one of the functions of conformance.limits reads it."""

    def __init__(self, name: str, read: Callable[[Any], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The limit; a usage error where it is none."""
        try:
            return self._read(value)
        except NormspecError as error:
            self.fail(str(error), param, ctx)


SECONDS = Limit("seconds", seconds_of)
SIZE = Limit("size", bytes_of)

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

config_option = click.option(
    "--config",
    metavar="FILE",
    help="A TOML file with the table [tool.normspec]. Default: the nearest pyproject.toml upwards that has it.",
)

python_option = click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="[TARGET=]PATH",
    help="The Python interpreter, or virtual environment, that runs the targets or the one named; it needs NumPy and "
    "the framework. Repeat for several.",
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
