"""The matrix of the self-test: requirement x fault, and the names of the faults under it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..judging.verdicts import Verdict
from ..selftest.matrix import FaultRow, Matrix
from .layout import print_line, print_rule, print_title, width_of
from .symbols import Symbols, symbols_for
from .wording import page_order

_ID_WIDTH = 8

#: A fault's column number within its operator, and the fault.
_Numbered = tuple[int, FaultRow]


def _mark(row: FaultRow, identifier: str, symbols: Symbols) -> tuple[str, str]:
    if identifier == row.requirement:
        return (symbols.kills, "bold green") if row.killed else (symbols.verdicts[Verdict.FAIL], "bold red")
    return (symbols.also, "green") if identifier in row.killed_by else (symbols.nothing, "dim")


def _print_block(rows: Sequence[_Numbered], ids: Sequence[str], console: Console, symbols: Symbols) -> None:
    """Print the columns of some faults. A column's number stands above it, read downwards."""
    console.print()
    height = len(str(max(number for number, _ in rows)))
    for digit in range(height):
        head = "".join(str(number).rjust(height)[digit] for number, _ in rows)
        print_line(Text(" " * _ID_WIDTH + head, style="dim"), console)
    for identifier in ids:
        line = Text(identifier.ljust(_ID_WIDTH), style="bold")
        for _, row in rows:
            line.append(*_mark(row, identifier, symbols))
        print_line(line, console)


def _print_names(rows: Sequence[_Numbered], console: Console) -> None:
    console.print()
    longest = max((len(row.fault) for _, row in rows), default=0)
    for number, row in rows:
        others = len(set(row.killed_by) - {row.requirement})
        line = Text.assemble((f"{number:3} ", "dim"), row.fault.ljust(longest + 2))
        if row.killed:
            line.append(f"killed by {row.requirement}", style="green")
            line.append(f" and {others} more" if others else "", style="dim")
        else:
            line.append(f"SURVIVED {row.requirement} in {', '.join(row.survived)}", style="bold red")
        print_line(line, console)


def _print_sound(matrix: Matrix, op: str, console: Console, symbols: Symbols) -> None:
    rows = [row for row in matrix.sound if row.op == op]
    if not rows:
        return
    print_title("Sound functions, of which none may be accused", console)
    for row in rows:
        if row.accused_by:
            line = Text(
                f"{symbols.verdicts[Verdict.FAIL]} {row.name}: accused by {', '.join(row.accused_by)}", style="bold red"
            )
            console.print(line)
        else:
            console.print(Text(f"{symbols.verdicts[Verdict.PASS]} {row.name}", style="green"))


def conclusion(matrix: Matrix) -> tuple[str, str]:
    """The line that ends the matrix, and its colour."""
    killed = len(matrix.faults) - len(matrix.survivors())
    tally = f"{killed} of {len(matrix.faults)} killed, {len(matrix.accused())} of {len(matrix.sound)} sound accused"
    if matrix.partial:
        return f"PARTIAL, stopped before the end: {tally}.", "bold yellow"
    if matrix.proven:
        return f"PROVEN: {tally}.", "bold green"
    if matrix.survivors() or matrix.accused():
        return f"NOT PROVEN: {tally}.", "bold red"
    return "NOTHING WAS TESTED", "bold yellow"


def print_matrix(matrix: Matrix, console: Console) -> None:
    """Print the result of each fault, by operator, under the matrix if that is complete; and the conclusion."""
    symbols = symbols_for(console.encoding)
    room = max(10, width_of(console) - _ID_WIDTH)
    for op in dict.fromkeys([row.op for row in matrix.faults] + [row.op for row in matrix.sound]):
        print_title(op, console)
        print_rule(symbols.rule, console)
        rows = list(enumerate((row for row in matrix.faults if row.op == op), start=1))
        ids = page_order(i for _, row in rows for i in (*row.killed_by, row.requirement))
        for start in range(0, len(rows) if matrix.whole else 0, room):
            _print_block(rows[start : start + room], ids, console, symbols)
        _print_names(rows, console)
        _print_sound(matrix, op, console, symbols)
    console.print()
    legend = (
        (symbols.kills, "the requirement that must kill the fault did"),
        (symbols.also, "this one did too"),
        (symbols.verdicts[Verdict.FAIL], "it did not"),
    )
    for symbol, meaning in legend if matrix.whole else ():
        console.print(Text(f"{symbol} {meaning}", style="dim"))
    words, style = conclusion(matrix)
    runs = sum(len(row.dtypes) for row in matrix.faults)
    told = f"profile {matrix.profile}, seed {matrix.seed}, {runs} pairs of fault and dtype, {matrix.seconds:.1f} s"
    console.print(Text(told, style="dim"))
    console.print()
    console.print(Text(words, style=style))
