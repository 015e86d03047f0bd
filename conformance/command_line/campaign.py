"""`normspec campaign`: judge targets on many seeds, and continue after an interruption."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...spec.conventions import parse_conventions
from ..reporting.layout import console_on
from ..requests.command import command
from ..requests.configuration import Configuration
from ..requests.naming import named_targets
from .exit_status import EXIT_UNUSABLE
from .options import cluster_option, jobs_option, profile_option, python_option, target_options, time_limit_option
from .progress import progress_on
from .settings import interpreters

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


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--seeds", type=SeedsParameter(), metavar="A:B", help="The seeds from A up to, but not including, B.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The folder that keeps what is done.")
@click.option(
    "--summary", type=click.Path(path_type=Path), metavar="DIR", help="Print what DIR holds, and run nothing."
)
@target_options
@profile_option("thorough")
@python_option
@time_limit_option
@jobs_option
@cluster_option
def campaign(
    targets: tuple[str, ...],
    seeds: range | None,
    out: Path | None,
    summary: Path | None,
    **options: Any,
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

    operators = options["ops"] or None
    names = named_targets(targets, operators)
    request = requested(
        names,
        op=operators,
        framework=options["framework"],
        dtypes=options["dtypes"] or None,
        device=options["device"],
        conventions=parse_conventions(options["conventions"]),
        profile=options["profile"],
        python=interpreters(options["pythons"], Configuration()),
        time_limit=options["time_limit"],
        cache=False,  # no case comes twice
    )
    with progress_on() as listener:
        from ..campaign.running import run

        who = {"jobs": options["jobs"], "cluster": options["cluster"]}
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
        device=identity["device"],
        framework=identity["framework"],
        python=identity["pythons"],
        out="DIR",
    )
