"""`normspec selftest`: the suite against known faults and sound functions."""

from __future__ import annotations

import sys

import click

from ..reporting.matrix_table import print_matrix
from .console import console_on, progress_on
from .options import dtype_option, profile_option, seed_option


@click.command()
@click.option("--op", "ops", multiple=True, metavar="OP", help="An operator, such as highway; repeat for several.")
@dtype_option
@profile_option("quick")
@seed_option
def selftest(ops: tuple[str, ...], dtypes: tuple[str, ...], profile: str, seed: int | None) -> int:
    """Prove the suite: it must kill every known fault and accuse no sound function.

    Prints the matrix requirement x fault, and for each fault the requirement that killed it.
    """
    from ..selftest import selftest as run

    op = None if not ops else ops[0] if len(ops) == 1 else tuple(dict.fromkeys(ops))
    with progress_on() as listener:
        matrix = run(op=op, dtypes=tuple(dict.fromkeys(dtypes)) or None, profile=profile, seed=seed, progress=listener)
    print_matrix(matrix, console_on(sys.stdout))
    return matrix.exit_status
