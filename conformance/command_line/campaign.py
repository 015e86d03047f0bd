"""`normspec campaign`: judge targets on many seeds, and continue after an interruption."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..reporting.layout import console_on
from ..requests.command import command, in_options
from ..requests.configuration import configuration
from ..requests.naming import named_targets
from . import completing
from .exit_status import EXIT_UNUSABLE
from .layer_options import declaring_options
from .options import (
    cluster_option,
    config_option,
    forward_only_option,
    jobs_option,
    mode_option,
    profile_option,
    target_options,
    worker_options,
)
from .progress import progress_on
from .sections import SectionedCommand
from .settings import about_targets, interpreters, setting, targets_to_check

if TYPE_CHECKING:
    from ..campaign.summary import Summary


class SeedsParameter(click.ParamType):
    """Seeds from a first one up to a last one, which is not included."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """The seeds; a usage error if the text gives none."""
        first, colon, last = str(value).partition(":")
        if not (colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)):
            self.fail(
                f"{value!r} is not a range of seeds: write FIRST:LAST, such as 0:1000; LAST itself is not included",
                param,
                ctx,
            )
        return range(int(first), int(last))


@click.command(cls=SectionedCommand, short_help="Check targets on many seeds, for hours, with breaks.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=completing.CAMPAIGN_TARGETS)
@click.option("--seeds", type=SeedsParameter(), metavar="A:B", help="The seeds from A up to, but not including, B.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The folder that keeps what is done.")
@click.option(
    "--summary", type=click.Path(path_type=Path), metavar="DIR", help="Print what DIR holds, and run nothing."
)
@target_options
@profile_option("thorough")
@mode_option
@forward_only_option
@declaring_options
@worker_options
@jobs_option
@cluster_option
@config_option
@click.pass_context
def campaign(
    context: click.Context,
    targets: tuple[str, ...],
    seeds: range | None,
    out: Path | None,
    summary: Path | None,
    pythons: tuple[str, ...],
    profile: str,
    config: str | None,
    **_: Any,  # options about targets and configurable options are read from the context
) -> int:
    """Check targets on many seeds: a soak test that can be stopped and continued.

    TARGET is what `normspec check` takes, or `sound` for all sound functions of the self-test. A unit is a target, an
    operator, a dtype and a seed. Each unit is stored in DIR when it is done, and the same command continues where it
    stopped. At the end DIR has summary.json, summary.md and a plot, ratios.svg.

    Exit status: 0 no violation, 1 a MUST is violated, 2 nothing was judged, 3 stopped before the end, or errors.
    """
    from ..campaign.store import Store
    from ..campaign.summary import Summary

    if summary is not None:
        if targets or seeds is not None or out is not None:
            raise click.UsageError("--summary reads what is there: give no targets, seeds or --out with it")
        return _print_and_write(Summary.of(Store.read(summary)), summary)
    if not targets or seeds is None or out is None:
        raise click.UsageError("give at least one target, --seeds and --out; or --summary DIR")
    from ..api import requested

    configured = configuration(config)
    paths, op = interpreters(pythons, configured), setting(context, configured, "ops") or None
    names = named_targets(targets_to_check(targets, pythons, paths, configured, op), op)
    about = about_targets(context, names, paths, configured)
    request = requested(names, **about, profile=profile, cache=False)  # no case comes twice
    with progress_on() as listener:
        from ..campaign.running import run

        who = {key: setting(context, configured, key) for key in ("jobs", "cluster")}
        found = run(names, request, seeds, out, **who, listener=listener)
    return _print_and_write(found, out)


def _print_and_write(found: Summary, folder: Path) -> int:
    """
    Print the summary, write it into the folder in its three forms, and return the exit status.

    What was printed stands if the folder takes no files: one line says so, and the status is not 0.
    """
    from ..campaign.plot import NoPlot, drawn
    from ..campaign.store import replace
    from ..reporting.campaign_table import print_campaign, to_markdown

    console = console_on(sys.stdout)
    print_campaign(found, console, str(folder))
    try:
        replace(folder / "summary.json", found.to_json())
        replace(folder / "summary.md", to_markdown(found, command_of(found.asked)))
        if found.units:
            replace(folder / "ratios.svg", drawn(found))
    except NoPlot as error:
        click.echo(f"normspec: {error}", err=True)
    except OSError as error:
        click.echo(f"normspec: {folder} takes no summary: {error.strerror or error}", err=True)
        return found.exit_status or EXIT_UNUSABLE
    return found.exit_status


def command_of(asked: Mapping[str, Any]) -> str:
    """The command of a campaign, from what its folder records."""
    identity, (first, last) = asked["identity"], asked["seeds"]
    return command(
        "campaign",
        *identity["targets"],
        seeds=f"{first}:{last}",
        profile=identity["profile"],
        op=identity["op"],
        dtype=identity["dtypes"],
        convention=identity["conventions"],
        mode=identity.get("mode"),
        forward_only=identity.get("forward_only", False),
        **in_options(identity.get("declared", {})),
        device=identity["device"],
        framework=identity["framework"],
        python=identity["pythons"],
        out="DIR",
    )
