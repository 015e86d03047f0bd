"""The matrix requirement x dtype: one table per target and operator, one row per requirement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import attrs
from rich.console import Console
from rich.text import Text

from ...reference.formats import ALL_DTYPES
from ..grouping import grouped
from ..judging.verdicts import Result, Verdict
from ..results.outcome import Outcome
from .layout import print_line, print_prose, print_rule, width_of
from .numbers import ratio_text
from .symbols import COLOURS, SEVERITY, Symbols, symbol_and_style
from .wording import is_advice, page_order, title

#: Widest first column ("BN-G12 "), and the width of one dtype ("bfloat16 ").
_ID_WIDTH = 8
_CELL_WIDTH = 9

#: Up to this many rows of errors are printed each by itself: more say nothing that one does not.
_MOST_FAILING = 9

#: With less room for titles, the columns are not printed side by side.
_TITLE_WIDTH = 12


@attrs.frozen(slots=False)
class ResultTable:
    """The results in one table."""

    target: str
    op: str
    device: str
    results: tuple[Result, ...]

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that were judged, in the order of the columns; others follow."""
        seen = dict.fromkeys(r.dtype for r in self.results)
        return tuple(sorted(seen, key=lambda d: (ALL_DTYPES.index(d) if d in ALL_DTYPES else len(ALL_DTYPES), d)))

    @cached_property
    def bindings(self) -> tuple[str, ...]:
        """The bindings that were judged, in the order of the run."""
        return tuple(dict.fromkeys(r.binding for r in self.results))


def result_tables(report: Outcome) -> tuple[ResultTable, ...]:
    """The report's results by target, operator and device, in the order of the run."""
    found = grouped(((one.target, one.op, one.device), one) for one in report.results)
    return tuple(ResultTable(*key, tuple(results)) for key, results in found.items())


def most_severe(results: Iterable[Result]) -> Result | None:
    """
    The result that represents all: that of the most severe verdict.

    Among equals one that follows from no other, and among these that of the largest ratio.
    """
    return min(results, key=lambda r: (SEVERITY.index(r.verdict), bool(r.follows_from), -_magnitude(r)), default=None)


def follows(result: Result) -> bool:
    """Whether a result is a violation that follows from another."""
    return result.verdict.is_violation and bool(result.follows_from)


def _magnitude(result: Result) -> float:
    if result.ratio is None:
        return -1.0
    return float("inf") if result.ratio != result.ratio else result.ratio


def _cell(results: Sequence[Result], symbols: Symbols) -> Text:
    worst = most_severe(results)
    if worst is None:
        return Text(" " * _CELL_WIDTH)
    symbol, style = symbol_and_style(worst, symbols)
    compared = worst.verdict in (Verdict.PASS, Verdict.DEVIATES) or worst.verdict.is_violation
    number = f" {ratio_text(worst.ratio)}" if compared and worst.ratio is not None else ""
    if follows(worst):
        number, style = f" {worst.follows_from[0]}", "red"
    text = Text(symbol, style=style)
    text.append(number, style="dim" if worst.verdict is Verdict.PASS else style)
    text.pad_right(max(0, _CELL_WIDTH - len(text.plain)))
    return text


def _clip(words: str, width: int, symbols: Symbols) -> str:
    if len(words) > width:
        words = words[: width - len(symbols.ellipsis)].rstrip() + symbols.ellipsis
    return words.ljust(width)


def _by_agreement(table: ResultTable, results: Sequence[Result]) -> list[list[str]]:
    """The bindings, grouped where their verdicts on this requirement agree in every dtype."""
    cells = grouped(((one.binding, one.dtype), one) for one in results)

    def verdicts(binding: str) -> tuple[Verdict | None, ...]:
        worst = (most_severe(cells.get((binding, dtype), ())) for dtype in table.dtypes)
        return tuple(one and one.verdict for one in worst)

    there = {one.binding for one in results}
    return list(grouped((verdicts(one), one) for one in table.bindings if one in there).values())


def print_table(table: ResultTable, version: str, console: Console, symbols: Symbols) -> None:
    """Print one table: what was run, and its rows."""
    console.print()
    console.print(
        Text.assemble((table.op, "bold"), "   ", (table.target, "bold cyan"), f" {version}   ", (table.device, "dim"))
    )
    print_rule(symbols.rule, console)
    bindings = table.bindings
    if bindings != (table.target,):
        print_prose(Text(", ".join(bindings), style="dim"), console)

    dtypes = table.dtypes
    room = width_of(console) - _ID_WIDTH - _CELL_WIDTH * len(dtypes) - 1
    if room < _TITLE_WIDTH:
        _print_narrow(table, console, symbols)
        return
    header = " " * (_ID_WIDTH + room + 1) + "".join(d.ljust(_CELL_WIDTH) for d in dtypes)
    console.print(Text(header.rstrip(), style="bold"), no_wrap=True)
    for identifier, label, results in _rows(table):
        line = Text.assemble((identifier.ljust(_ID_WIDTH), "bold"))
        line.append(_clip(label, room, symbols) + " ")
        for dtype in dtypes:
            line.append_text(_cell([r for r in results if r.dtype == dtype], symbols))
        line.rstrip()
        print_line(line, console)


def _print_narrow(table: ResultTable, console: Console, symbols: Symbols) -> None:
    """Print the rows where there is no room for columns: each cell with the name of its dtype."""
    for identifier, label, results in _rows(table):
        print_prose(Text(label), console, indent=_ID_WIDTH, first=Text(identifier, style="bold"))
        cells = [dtype.ljust(_CELL_WIDTH) for dtype in table.dtypes]
        for name, dtype in zip(cells, table.dtypes, strict=True):
            cell = _cell([r for r in results if r.dtype == dtype], symbols)
            print_prose(Text.assemble((name, "dim"), cell), console, indent=_ID_WIDTH)


def _rows(table: ResultTable) -> Iterator[tuple[str, str, list[Result]]]:
    """
    Each row of a table, in the order of the pages: the id, a label, and the results.

    The label is the requirement's title. Where bindings have different verdicts on it, each group of them has a row
    with its names as the label, and only the first of these rows has the id. Where much could not be judged, as of a
    function that fails in each call, one last row counts it.
    """
    by_requirement = grouped((one.requirement, one) for one in table.results)
    folded = _folded(by_requirement)
    for identifier in page_order(one for one in by_requirement if one not in folded):
        results = by_requirement[identifier]
        groups = _by_agreement(table, results)
        for position, names in enumerate(groups):
            own = [r for r in results if r.binding in names]
            if len(groups) == 1:
                label = _title(identifier, own)
            else:
                label = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
            yield "" if position else identifier, label, own
    if folded:
        others = " others" if len(folded) < len(by_requirement) else ""
        found = [one for name in folded for one in by_requirement[name] if one.verdict is Verdict.ERROR]
        yield "", f"{len(folded)}{others} could not be judged", found


def _folded(by_requirement: Mapping[str, Sequence[Result]]) -> list[str]:
    """The requirements of which nothing was judged, if these are many because calls fail; else none."""

    def all_are(results: Sequence[Result], *verdicts: Verdict) -> bool:
        return all(one.verdict in verdicts for one in results)

    failing = sum(all_are(results, Verdict.ERROR) for results in by_requirement.values())
    if failing <= _MOST_FAILING:
        return []
    unjudged = Verdict.ERROR, Verdict.NOT_EXERCISED
    return [name for name, results in by_requirement.items() if all_are(results, *unjudged)]


def _title(identifier: str, results: Sequence[Result]) -> str:
    if results[0].level == "SHOULD":
        return f"(should) {title(identifier)}"
    return f"(required) {title(identifier)}" if is_advice(identifier) else title(identifier)


def print_legend(report: Outcome, console: Console, symbols: Symbols) -> None:
    """
    Print the meaning of the symbols and of the numbers; where the report's tables have them, also that of ids in place
    of numbers, and of empty cells.
    """
    line = Text()
    for verdict, symbol in symbols.verdicts.items():
        line.append(symbol, style=COLOURS[verdict])
        line.append(f" {verdict.value}  ", style="dim")
    console.print()
    line.rstrip()
    print_prose(line, console)
    meaning = (
        "The number compares the largest error found with the largest that a sound algorithm can make there: "
        "up to 1 passes, and 58 is 58 times as large."
    )
    if any(map(follows, report.results)):
        meaning += " An id in its place says which violation this one follows from."
    if _has_empty_cells(report):
        whole = not (report.partial or report.replayed)
        why = "the requirement does not apply to that dtype" if whole else "nothing was judged there"
        meaning += f" An empty cell: {why}."
    print_prose(Text(meaning, style="dim"), console)


def _has_empty_cells(report: Outcome) -> bool:
    """Whether a row of a table lacks a dtype that the table has."""
    return any(
        {result.dtype for result in results} != set(table.dtypes)
        for table in result_tables(report)
        for _, _, results in _rows(table)
    )
