"""Options of several sub-commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ...adapters.frameworks import FRAMEWORKS
from ...adapters.remote.process import Limits
from ...spec.errors import NormspecError
from ..requests.limits import bytes_of, seconds_of, size_in_words
from ..requests.words import names_of
from . import completing

#: Adds something to a command, such as an option.
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def joined(*options: Decorator) -> Decorator:
    """Several options as one; the help shows them in this order."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


class LimitParameter(click.ParamType):
    """A limit, read by one of the functions of conformance.requests.limits."""

    def __init__(self, name: str, read: Callable[[Any], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The limit; a usage error if the text gives none."""
        try:
            return self._read(value)
        except NormspecError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(click.ParamType):
    """A whole number from some number on; click's own range calls a text that is none `not a valid integer range`."""

    name = "number"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error if the text gives none."""
        try:
            number = int(value)
        except ValueError:
            number = self._least - 1
        if number < self._least:
            self.fail(f"'{value}' is not a whole number from {self._least} on", param, ctx)
        return number


SECONDS = LimitParameter("seconds", seconds_of)
SIZE = LimitParameter("size", bytes_of)

seed_option = click.option(
    "--seed",
    type=WholeNumber(0),
    metavar="N",
    help="The seed of the cases, any whole number from 0 on: the same seed gives the same cases.",
)


def several_option(*names: str, **settings: Any) -> Decorator:
    """An option that may be repeated, or hold several names with commas between them."""
    return click.option(*names, multiple=True, callback=lambda context, option, texts: names_of(texts), **settings)


def op_option_with(default: str = "") -> Decorator:
    """`--op`, with these words for its default."""
    told = "An operator, such as highway; repeat the option, or separate several with commas."
    return several_option(
        "--op",
        "ops",
        metavar="OP",
        shell_complete=completing.OPERATORS,
        help=f"{told} Default: {default}." if default else told,
    )


op_option = op_option_with()

framework_option = click.option(
    "--framework",
    metavar="NAME",
    shell_complete=completing.FRAMEWORKS,
    help="The framework whose tensors your function takes: "
    f"{', '.join(name for name in FRAMEWORKS if '[' not in name)}. "
    "Needed if its imports do not show it.",
)


def dtype_option_with(default: str):
    """`--dtype`, with these words for its default."""
    return several_option(
        "--dtype",
        "dtypes",
        metavar="D",
        shell_complete=completing.DTYPES,
        help="float16, bfloat16, float32 or float64; repeat the option, or separate several with commas. "
        f"Default: {default}.",
    )


device_option = click.option(
    "--device",
    default="cpu",
    show_default=True,
    metavar="DEV",
    help="The device, under the framework's name for it: cuda or cuda:1 for PyTorch, /GPU:0 for "
    "TensorFlow, gpu for JAX.",
)

convention_option = several_option(
    "--convention",
    "conventions",
    metavar="KEY=VALUE",
    shell_complete=completing.CONVENTIONS,
    help="Declare a choice your function makes, such as momentum=old; repeat the option, or separate several with "
    "commas.",
)

#: What targets are, and where they are judged.
target_options = joined(
    op_option, framework_option, dtype_option_with("all that the target has"), device_option, convention_option
)

mode_option = click.option(
    "--mode",
    metavar="MODE",
    shell_complete=completing.MODES,
    help="training or inference: judge batch_norm only in that mode. A function that declines every training call is "
    "judged only in inference even without this option.",
)

forward_only_option = click.option(
    "--forward-only", is_flag=True, help="Your function has no gradients by design: report them as unsupported."
)

only_option = click.option(
    "--only",
    multiple=True,
    metavar="WHAT",
    shell_complete=completing.SELECTIONS,
    help="Judge only this: an id such as LN-F3, a pattern such as 'LN-G*', a subject such as gradients, or a bundle; "
    "repeat the option, or separate several with commas.",
)

require_option = click.option(
    "--require",
    multiple=True,
    metavar="WHAT",
    shell_complete=completing.SELECTIONS,
    help="Treat this as a MUST: CM-P3, or a bundle such as deterministic or batch-invariant; in the same "
    "words as --only.",
)

binding_option = click.option(
    "--binding",
    multiple=True,
    metavar="NAME",
    help="Judge only these bindings of a framework: torch.nn.functional.layer_norm, or 'torch.nn.functional.*'.",
)

time_limit_option = click.option(
    "--time-limit",
    type=SECONDS,
    default=f"{Limits().seconds:g}",
    show_default=True,
    metavar="SECONDS|none",
    help="The time that a target may take for one requirement on one case. After that it is stopped, and "
    "the run continues.",
)

_memory_limit_option = click.option(
    "--memory-limit",
    type=SIZE,
    default=size_in_words(Limits().memory),
    show_default=True,
    metavar="SIZE|none",
    help="The private memory that a target may have on the CPU, such as 512MiB.",
)

jobs_option = click.option(
    "--jobs",
    type=WholeNumber(1),
    metavar="N",
    help="How many processes share the work; the result is the same for any number. Default: as many as there are "
    "cores, up to 8, if that pays off.",
)

cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="The Dask scheduler, such as tcp://127.0.0.1:8786, whose workers judge in place of this machine.",
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
        shell_complete=completing.PROFILES,
        help="quick: a fixed deck of witnesses; standard: generated cases too; thorough: many more.",
    )


#: Which interpreter runs targets, and how much time and memory they may take.
worker_options = joined(python_option, time_limit_option, _memory_limit_option)
