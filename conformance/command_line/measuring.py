"""What `normspec compare` and `normspec identify` share: their options, and how these reach the measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ..requests.configuration import configuration
from . import completing
from .destination import ensure_writable
from .layer_options import declared_options, declaring_options
from .options import Decorator, config_option, device_option, framework_option, joined, op_option_with, worker_options
from .progress import progress_on
from .settings import interpreters, setting, targets_to_check

Measured = TypeVar("Measured")


def measuring_options(default_operators: str, line: str) -> Decorator:
    """The options of a command that measures. ``line``: its word for what one measurement gives."""
    return joined(
        op_option_with(default_operators),
        framework_option,
        click.option(
            "--dtype",
            default="float32",
            show_default=True,
            metavar="D",
            shell_complete=completing.DTYPES,
            help=f"The dtype of all {line}s that are not about a particular dtype.",
        ),
        device_option,
        declaring_options,
        worker_options,
        config_option,
        click.option("--all-bindings", is_flag=True, help="Measure every binding of an operator, not only the first."),
    )


def measured(
    measure: Callable[..., Measured], context: click.Context, targets: tuple[str, ...], given: Mapping[str, Any]
) -> Measured:
    """Call `normspec.compare` or `normspec.identify` with the user's options, the configuration and the defaults."""
    configured = configuration(given["config"])
    if given["json_file"] is not None:
        ensure_writable(given["json_file"])
    pythons, operators = given["pythons"], given["ops"] or None
    paths = interpreters(pythons, configured)
    names = targets_to_check(targets, pythons, paths, configured, operators)
    with progress_on() as listener:
        return measure(
            names,
            op=operators,
            dtype=given["dtype"],
            device=setting(context, configured, "device"),
            framework=given["framework"],
            all_bindings=given["all_bindings"],
            python=paths or None,
            time_limit=setting(context, configured, "time-limit"),
            memory_limit=setting(context, configured, "memory-limit"),
            progress=listener,
            **declared_options(given["parameters"], given["layout"], given["fixed"]),
        )
