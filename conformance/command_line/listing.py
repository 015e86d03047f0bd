"""`normspec list`: what can be checked here, and what would have to be installed first."""

from __future__ import annotations

import sys
from importlib import metadata

import click
from rich.text import Text

from .console import console_on


def state(name: str) -> tuple[str, bool]:
    """The version of the framework, or the command that installs it; and whether it is installed."""
    from ...adapters.frameworks import how_to_install, installed

    if name not in installed():
        return f"not installed: {how_to_install(name)}", False
    try:
        return metadata.version(name), True
    except metadata.PackageNotFoundError:
        return "installed", True


@click.command("list")
def list_targets() -> int:
    """List the built-in targets with their versions, or the command that installs them."""
    from ...adapters.targets import BUILTIN

    console = console_on(sys.stdout)
    width = 3 + max(map(len, BUILTIN))
    for name in BUILTIN:
        words, installed = state(name)
        line = Text.assemble((name.ljust(width), "bold"), (words, "green" if installed else "dim"))
        console.print(line, soft_wrap=True)
    return 0
