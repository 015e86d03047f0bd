"""`normspec check`: judge targets, print the report, and end with its exit status."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import click

from ..expected.drafting import drafts_in_words
from ..reporting.github import commands_stopped
from ..requests.configuration import configuration
from ..results.report import Report
from . import completing
from .destination import ensure_not_read, text_stream
from .exit_status import EXIT_UNUSABLE
from .layer_options import layer_options
from .options import (
    binding_option,
    cluster_option,
    config_option,
    forward_only_option,
    jobs_option,
    mode_option,
    only_option,
    profile_option,
    require_option,
    seed_option,
    target_options,
    worker_options,
)
from .outputs import output_options, outputs_of, print_annotations, print_in_form, write_outputs
from .progress import progress_on
from .replay_options import ensure_replayable, replay_option, reproduce_option
from .sections import SectionedCommand
from .settings import about_targets, interpreters, setting, targets_to_check


def run_targets(targets: Sequence[str], options: Mapping[str, Any]) -> Report:
    """Check these targets, all of them or none."""
    from ..api import check as check_targets

    with progress_on() as listener:
        return check_targets(tuple(targets), progress=listener, **options)


@click.command(cls=SectionedCommand)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=completing.TARGETS)
@target_options
@profile_option("standard")
@seed_option
@only_option
@require_option
@binding_option
@mode_option
@forward_only_option
@click.option(
    "--slow/--no-slow",
    default=None,
    help="Run each requirement on a few cases of a few shapes, or on all. Default: a few if a call takes "
    "20 ms or more.",
)
@layer_options
@worker_options
@jobs_option
@cluster_option
@click.option(
    "--cache-dir",
    metavar="DIR",
    help="Where exact values, bounds and results are kept for the next run; no verdict depends on it. Default: the "
    "folder that NORMSPEC_CACHE names, or ~/.cache/normspec.",
)
@click.option("--no-cache", is_flag=True, help="Judge everything now, and keep nothing.")
@click.option("--resume", is_flag=True, help="Continue the last run of this same command, if it was interrupted.")
@config_option
@replay_option
@reproduce_option
@output_options
@click.pass_context
def check(
    context: click.Context,
    targets: tuple[str, ...],
    slow: bool | None,
    layers: bool,
    pythons: tuple[str, ...],
    no_cache: bool,
    resume: bool,
    config: str | None,
    replay: str | None,
    reproduce: str | None,
    **_: Any,  # files to write, options about targets and configurable options are read from the context
) -> int:
    """Check targets: a framework's own layers, or your function.

    TARGET is a name that `normspec list` shows, FILE.py:NAME, FILE.py for all functions and classes of layers in it
    that are named after operators, package.module:NAME, or exec:COMMAND. Without one, the targets that [tool.normspec]
    in pyproject.toml names are checked, or else everything installed.

    Each target runs in a process of its own, and nothing that it does there harms the others.

    Exit status: 0 conforms, 1 a MUST is violated or an expected failure did not happen, 2 nothing could be checked or a
    file could not be written, 3 checked only in part.
    """
    ensure_replayable(context, replay, targets)
    configured = configuration(config)
    outputs = outputs_of(context.params)
    ensure_not_read([(one.option, one.name) for one in outputs], [] if replay is None else [replay])
    paths = interpreters(pythons, configured)
    op = setting(context, configured, "ops") or None
    names = targets_to_check(targets, pythons, paths, configured, op)
    options = {
        **about_targets(context, names, paths, configured),
        "profile": setting(context, configured, "profile"),
        "seed": setting(context, configured, "seed"),
        "slow": slow,
        "only": setting(context, configured, "only") or None,
        "require": setting(context, configured, "require") or None,
        "binding": setting(context, configured, "binding") or None,
        "jobs": setting(context, configured, "jobs"),
        "cache": False if no_cache else setting(context, configured, "cache-dir"),
        "resume": resume,
        "cluster": setting(context, configured, "cluster"),
        "replay": replay,
        "reproduce": reproduce,
        "expected": configured.values.get("expected", ()),
        "layers": layers,
    }
    stream, form = text_stream(*(one.name for one in outputs)), context.params["form"]
    with contextlib.ExitStack() as kept:
        if form == "github":  # the target prints while it runs
            kept.enter_context(commands_stopped(stream))
        if context.params["html_file"] is not None and reproduce is None:  # the page shows scripts in any case
            options["reproduce"] = kept.enter_context(tempfile.TemporaryDirectory(prefix="normspec-"))
        found = run_targets(names, options)
        report = found if reproduce is not None else attrs.evolve(found, reproducers=())
        # Files come first: a verdict must not be the last word of a command that could not do everything.
        unwritten = write_outputs(report, outputs, found.reproducers)
        print_in_form(report, form, stream)
    if form == "github":
        print_annotations(report, stream)
    status = report.exit_status or (EXIT_UNUSABLE if unwritten else 0)
    for reason in unwritten:
        told = f"normspec: {reason}; the verdict above stands, and the exit status is {status}"
        click.echo(told, file=sys.stderr)
    if not unwritten and (drafted := drafts_in_words(context.params["write_expected"], report)):
        click.echo(f"normspec: {drafted}", file=sys.stderr)
    return status
