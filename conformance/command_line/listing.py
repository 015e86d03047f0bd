"""`normspec list`: what can be checked here, and what must be installed first."""

from __future__ import annotations

import click

from ...adapters.remote.launching import interpreter
from ..reporting.layout import console_on
from ..requests.configuration import configuration
from .destination import ensure_writable, status_after_writing, text_stream
from .options import config_option, python_option
from .progress import progress_on
from .settings import interpreters


@click.command("list", short_help="List the targets that can be checked here.")
@click.option("--no-import", is_flag=True, help="Import nothing: show only names and versions, at once.")
@python_option
@config_option
@click.option("--json", "json_file", metavar="FILE", help="Write the list as JSON; - for standard output.")
def listing(no_import: bool, pythons: tuple[str, ...], config: str | None, json_file: str | None) -> int:
    """List the known targets: versions, operators, dtypes and devices, or the command that installs them.

    Each installed target is imported, in a process of its own, and asked what it has.
    """
    from ..inventory import inventory
    from ..reporting.inventory_table import inventory_to_json, print_inventory

    if json_file is not None:
        ensure_writable(json_file)
    paths = interpreters(pythons, configuration(config))
    interpreter(paths.get("", ""))  # one for all targets must be there; one target's own is a matter of its line
    with progress_on() as listener:
        entries = inventory(paths, importing=not no_import, progress=listener)
    print_inventory(entries, console_on(text_stream(json_file)), asked=not no_import)
    return status_after_writing(0, json_file, lambda: inventory_to_json(entries))
