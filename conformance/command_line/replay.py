"""`--replay` and `--reproduce`: failures judged again on this target or another, and failures as scripts."""

from __future__ import annotations

from collections.abc import Sequence

import click

replay_option = click.option(
    "--replay",
    metavar="REPORT.json",
    help="Judge only the failed cases of a report that --json wrote, each exactly as it is stored.",
)

reproduce_option = click.option(
    "--reproduce",
    metavar="DIR",
    help="Write a script for each cause, and for each violation without one, that shows it without normspec.",
)


def ensure_replayable(replay: str | None, targets: Sequence[str]) -> None:
    """Raise a usage error if no target is given for the cases: a report names no target to run."""
    if replay is not None and not targets:
        raise click.UsageError(f"--replay {replay} needs a TARGET: the one that the report is about, or another")
