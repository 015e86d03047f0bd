"""`--replay`: the failed cases of a report, on the target that they were found on or on another."""

from __future__ import annotations

from collections.abc import Sequence

import click

replay_option = click.option(
    "--replay",
    metavar="REPORT.json",
    help="Judge nothing but the failed cases of a report that --json wrote, each as it stands there.",
)


def ensure_replayable(replay: str | None, targets: Sequence[str]) -> None:
    """Raise a usage error where it is not said what the cases are to be judged on: a report names no target to run."""
    if replay is not None and not targets:
        raise click.UsageError(f"--replay {replay} needs a TARGET: the one that the report is about, or another")
