"""
The semantic table for the terminal.

If the targets fit side by side, each has a column. If not, a row names each behaviour once, with the targets that show
it, which reads well for any number of targets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..compare.comparison import Comparison
from ..compare.table import BEHAVIOUR, BY_CALLER, Cell, Column, Kind, OperatorTable, Row
from ..grouping import grouped
from .layout import print_conclusion, print_line, print_prose, print_rule, print_title
from .symbols import Symbols, symbols_for
from .wording import counted

#: The widest title of a row with its dtype, and the width of the sign before it.
_TITLE, _SIGN = 23, 2
#: What stands before the lines that belong to no row, or to the one above.
_NO_LEAD = " " * (_SIGN + _TITLE)
#: The narrowest column in which cells read well, and the blanks between columns.
_NARROWEST, _GAP = 19, 2
#: The width of a behaviour's words, if each behaviour is named once.
_BEHAVIOUR = 27
#: With less room for the names of the targets that show a behaviour, they follow its words.
_NAMES = 12
#: A table wider than this is not easier to read.
_WIDEST = 140

#: What a line of a cell is put together of: it is broken after blanks, dots and slashes.
_PIECE = re.compile(r"[^ ./]*[ ./]|[^ ./]+", re.S)

#: The style of a cell that shows no behaviour: it stays in the background.
_STYLES = {Kind.UNSUPPORTED: "bright_black", Kind.UNCLEAR: "magenta", Kind.LOST: "bold magenta"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the tables, the reasons for what could not be measured, and the conclusion."""
    symbols = symbols_for(console.encoding)
    for section in comparison.sections:
        _print_section(section, comparison, console, symbols)
    _print_notes(comparison, console)
    print_conclusion(conclusion(comparison), console)


def conclusion(comparison: Comparison) -> tuple[str, str]:
    """The line that ends the table, and its colour."""
    compared = [section for section in comparison.sections if len(section.columns) > 1] or comparison.sections
    every = [row for section in compared for row in section.rows]
    rows, count = sum(row.is_compared for row in every), len(comparison.differences)
    lost = sum(cell.kind is Kind.LOST for one in comparison.sections for row in one.rows for cell in row.cells)
    differ, cells = "differs" if count == 1 else "differ", "cell" if lost == 1 else "cells"
    found = f"{count} of {counted(rows, 'row')} {differ}" if count else f"no difference in {counted(rows, 'row')}"
    targets = {column.target for section in compared for column in section.columns}
    if len(targets) > 1 and all(len(section.columns) == 1 for section in compared):
        found = "nothing was compared: no operator is common to two of them"
    elif rows < len(every):
        found += f"; {len(every) - rows} more could not be compared"
    found += f" ({lost} {cells} could not be measured)" if lost else ""
    found = f"{found}; measured in {comparison.dtype} on {comparison.device}, {comparison.seconds:.1f} s"
    if comparison.partial:
        return f"PARTIAL: stopped before the end ({found})", "bold yellow"
    if comparison.left_out:
        found += f"; without the operators compared: {', '.join(comparison.left_out)}"
    return found, "bold yellow" if count else "bold"


# One operator ---------------------------------------------------------------------------------------------


def _print_section(section: OperatorTable, comparison: Comparison, console: Console, symbols: Symbols) -> None:
    width = min(console.width, _WIDEST)
    console.print()
    console.print(Text.assemble((section.op, "bold"), "   ", (comparison.device, "dim")))
    print_rule(symbols.rule, console, 100)
    each = (width - _SIGN - _TITLE) // len(section.columns) - _GAP
    if each >= _NARROWEST:
        _side_by_side(section, min(each, 40), console, symbols)
    else:
        _by_behaviour(section, width, console, symbols)


def _heads(section: OperatorTable) -> list[str]:
    return [column.label(with_binding=section.with_bindings) for column in section.columns]


def _lead(row: Row, symbols: Symbols) -> Text:
    style = "bold yellow" if row.differs else "dim"
    sign = symbols.differs if row.differs else ""
    return Text(sign.ljust(_SIGN) + row.title.ljust(_TITLE), style=style)


def _side_by_side(section: OperatorTable, each: int, console: Console, symbols: Symbols) -> None:
    _print_lines(Text(_NO_LEAD), [_lines(head, each, "bold cyan") for head in _heads(section)], each, console)
    for line in zip(*(_under(column, section) for column in section.columns), strict=True):
        _print_lines(Text(_NO_LEAD), [_lines(words, each, "dim") for words in line], each, console)
    for row in section.rows:
        cells = [_lines(cell.text, each, _style(cell, row)) for cell in row.cells]
        _print_lines(_lead(row, symbols), cells, each, console)


def _under(column: Column, section: OperatorTable) -> tuple[str, str]:
    """The lines under a name: the binding, or else its target or framework; and the version of the framework."""
    if section.with_bindings:
        return column.target, column.version
    return column.binding if column.binding != column.target else column.framework, column.version


def _print_lines(lead: Text, cells: Sequence[Sequence[Text]], each: int, console: Console) -> None:
    """Print one row of several columns, with as many lines as its longest cell."""
    for number in range(max(map(len, cells))):
        line = lead.copy() if number == 0 else Text(_NO_LEAD)
        for parts in cells:
            part = parts[number].copy() if number < len(parts) else Text()
            part.pad_right(each + _GAP - cell_len(part.plain))
            line.append_text(part)
        line.rstrip()
        print_line(line, console)


def _lines(words: str, width: int, style: str) -> list[Text]:
    return [Text(line, style=style) for line in _wrapped(words, width)]


def _wrapped(words: str, width: int) -> list[str]:
    """Lines of at most this many columns, broken at blanks, or after dots and slashes in a long name."""
    lines, line = [], ""
    for piece in _PIECE.findall(words):
        if line and len(line) + len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
        while len(line.rstrip()) > width:
            lines.append(line[:width])
            line = line[width:]
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _style(cell: Cell, row: Row) -> str:
    if cell.kind not in BEHAVIOUR:
        return _STYLES[cell.kind]
    return "bold yellow" if row.differs else ""


# Many targets ---------------------------------------------------------------------------------------------


def behaviours(row: Row) -> list[tuple[Cell, list[int]]]:
    """Each behaviour with the columns that show it, the most frequent first; cells without a behaviour come last."""
    found = grouped(((cell.kind not in BEHAVIOUR, cell.text), place) for place, cell in enumerate(row.cells))
    in_order = sorted(found.items(), key=lambda item: (item[0][0], -len(item[1])))
    return [(row.cells[places[0]], places) for _, places in in_order]


def _by_behaviour(section: OperatorTable, width: int, console: Console, symbols: Symbols) -> None:
    heads = _heads(section)
    for head, column in zip(heads, section.columns, strict=True):
        under = " ".join(_under(column, section))
        print_prose(Text.assemble((head, "bold cyan"), "  ", (under, "dim")), console, indent=2)
    console.print()
    rest = width - _SIGN - _TITLE - _BEHAVIOUR - _GAP
    for row in section.rows:
        lead = _lead(row, symbols)
        if rest < _NAMES:
            print_prose(lead, console)
        for cell, places in behaviours(row):
            style = _style(cell, row)
            others = style if row.differs else "dim"
            names = "all" if len(places) == len(heads) else ", ".join(heads[place] for place in places)
            if rest < _NAMES:
                print_prose(Text.assemble((cell.text, style), (f"  {names}", others)), console, indent=4)
                continue
            cells = [_lines(cell.text, _BEHAVIOUR, style), _lines(names, rest, others)]
            _print_lines(lead, cells, _BEHAVIOUR, console)
            lead = Text(_NO_LEAD)


# What could not be measured ---------------------------------------------------------------------------------


def notes(comparison: Comparison) -> dict[tuple[str, str], list[str]]:
    """(text of a cell, reason) -> the places with it, for each cell that is not a plain measurement."""
    # A value given by the caller needs no reason.
    return grouped(
        ((cell.text, reason), f"{head}, {section.op}: {row.title}")
        for section in comparison.sections
        for row in section.rows
        for head, cell in zip(_heads(section), row.cells, strict=True)
        if (reason := str(cell.evidence.get("reason", "")))
        and cell.kind is not Kind.MEASURED
        and cell.text != BY_CALLER
    )


#: An explanation of the words in some rows.
_LEGEND = (
    "accuracy: the tightest class that holds every result, variance / affine map; float16, bfloat16: what is rounded on"
    " the way, from H0 (only the results) to native (everything), or before-gain (the normalised values, before the"
    " gain multiplies them); see the pages on accuracy and on conventions."
)


def _print_notes(comparison: Comparison, console: Console) -> None:
    if any(row.key.startswith(("accuracy", "float16")) for section in comparison.sections for row in section.rows):
        console.print()
        print_prose(Text(_LEGEND, style="dim"), console)
    found = notes(comparison)
    if not found:
        return
    print_title("Why", console)
    for (text, reason), places in found.items():
        shown = "; ".join(places[:2]) + (f"; and {len(places) - 2} more" if len(places) > 2 else "")
        words = reason if reason.startswith(text.removeprefix("raises ")) else f"{text}: {reason}"
        print_prose(Text.assemble(words, " ", (f"({shown})", "dim")), console, indent=2)
