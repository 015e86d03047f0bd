"""`normspec study`: the literature's claims about these layers, measured on a target."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click

from ..reporting.layout import console_on
from . import completing
from .destination import UnwritableFile
from .options import WholeNumber, framework_option, op_option


@click.command(short_help="Put a claim about these layers to the test.")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completing.STUDIES)
@click.option(
    "--target",
    default="numpy",
    show_default=True,
    metavar="TARGET",
    shell_complete=completing.TARGETS,
    help="What `normspec check` takes.",
)
@op_option
@framework_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the figure and the numbers there.")
@click.option("--seed", type=WholeNumber(0), default=0, show_default=True, metavar="N", help="The first of the seeds.")
@click.option("--quick", is_flag=True, help="Smaller models and fewer points, in seconds: to try it out.")
def study(
    name: str | None, target: str, ops: tuple[str, ...], framework: str | None, out: Path | None, seed: int, quick: bool
) -> int:
    """Put a claim about these layers to the test; without a NAME, list the studies.

    A study measures what a claim of the literature is about, for at least 20 seeds, and says by a stated rule whether
    the claim holds. It uses the operators of TARGET. NumPy computes everything else, and the operators that TARGET
    lacks. With --out, DIR gets NAME.png, NAME.svg and NAME.json.

    Exit status: 0 studied, whatever the verdict; 2 the study or the target cannot be used.
    """
    from ...studies.catalogue import STUDIES, study_of
    from ...studies.operators import Operators
    from ...studies.study import Scale, run
    from ...studies.written import document, written
    from .study_table import print_outcome, print_studies

    if name is None:
        print_studies(list(STUDIES.values()), console_on(sys.stdout))
        return 0
    chosen = study_of(name)
    if out is not None:
        _ensure_folder(out)
    waiting = console_on(sys.stderr).status(f"{name} on {target}: up to a minute, and longer on a framework")
    with waiting, contextlib.redirect_stdout(sys.stderr):  # a target's prints must not get into the table
        operators = Operators.of(target, op=ops or None, framework=framework)
        outcome = run(chosen, operators, Scale(seed=seed, quick=quick))
    print_outcome(document(outcome), console_on(sys.stdout))
    if out is not None:
        from ...studies.drawing import NoFigure

        try:
            for file in written(outcome, out):
                click.echo(f"written: {file}")
        except NoFigure as error:
            click.echo(f"normspec: {error}", err=True)
        except OSError as error:
            raise _unwritable(out, error) from error
    return 0


def _ensure_folder(out: Path) -> None:
    """Make the folder before a minute is spent on its files."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(out, error) from error
    if not os.access(out, os.W_OK | os.X_OK):
        raise UnwritableFile(f"--out {out} is a folder that is not writable; name another")


def _unwritable(out: Path, error: OSError) -> UnwritableFile:
    return UnwritableFile(f"--out {out} cannot be written: {error.strerror or error}; name another")
