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


#: Options that choose cases or processes, by the reason why they have no effect on stored cases.
_WITHOUT_EFFECT = {
    "profile": "the report's cases are of a profile already",
    "seed": "the report's cases are of a seed already",
    "cluster": "the few cases of a report are judged by one process",
}


def ensure_replayable(context: click.Context, replay: str | None, targets: Sequence[str]) -> None:
    """Raise a usage error if no target is given, which a report does not name, or an option that would do nothing."""
    if replay is None:
        return
    if not targets:
        raise click.UsageError(f"--replay {replay} needs a TARGET: the one that the report is about, or another")
    for name, why in _WITHOUT_EFFECT.items():
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} does nothing with --replay: {why}; leave it out")
