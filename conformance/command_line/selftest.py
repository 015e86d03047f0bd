"""`normspec selftest`: the suite against known faults and sound functions."""

from __future__ import annotations

import click

from ..reporting.kill_table import in_json, in_markdown
from ..reporting.layout import console_on
from ..reporting.matrix_table import print_matrix
from .destination import ensure_writable, status_after_writing, text_stream
from .options import dtype_option_with, jobs_option, op_option, profile_option, seed_option
from .progress import progress_on


@click.command(short_help="Prove the suite on known mistakes and sound functions.")
@op_option
@dtype_option_with("for each fault all in which it shows, for each sound function all")
@profile_option("quick")
@seed_option
@jobs_option
@click.option(
    "--others",
    is_flag=True,
    help="Find what else each fault violates, and print the matrix requirement x fault. Takes many times as long.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="FILE",
    help="Write the table of kills, as JSON where FILE ends in .json and as Markdown otherwise: after how many cases"
    " each fault is killed in each dtype, and how it is diagnosed. Repeat for both. Takes many times as long.",
)
def selftest(
    ops: tuple[str, ...], dtypes: tuple[str, ...], profile: str, seed: int | None, jobs: int | None, others: bool,
    tables: tuple[str, ...],
) -> int:  # fmt: skip
    """Prove the suite: it must kill every known fault and accuse no sound function.

    Prints for each fault whether the requirement that must kill it did, in each dtype in which the fault shows;
    --dtype narrows that down.
    """
    from ..selftest.selftest import selftest as run

    for table in tables:
        ensure_writable(table, "--table")
    with progress_on() as listener:
        matrix = run(
            op=ops or None, dtypes=dtypes, profile=profile, seed=seed, others=others, table=bool(tables), jobs=jobs,
            progress=listener,
        )  # fmt: skip
    print_matrix(matrix, console_on(text_stream(*tables)))
    status = matrix.exit_status
    for table in tables:
        form = in_json if table.endswith(".json") else in_markdown
        status = status_after_writing(status, table, lambda form=form: form(matrix), "--table")
    return status
