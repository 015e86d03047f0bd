"""The targets for `normspec list`: what each offers, and how to get the missing ones."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from ...adapters.dtypes import DTYPES
from ...adapters.frameworks import KNOWN, full_name
from ...spec.extras import CLONE
from ...spec.operators import OPERATORS
from ..inventory import BROKEN, INSTALLED, MISSING, Entry
from .layout import print_prose, print_rule, print_title
from .symbols import Symbols, symbols_for

#: Width of the first column, and the blanks between columns.
_NAME, _GAP = max(map(len, KNOWN)) + 2, 2
#: The heads of the columns that may wrap.
_HEADS = ("operators", "dtypes", "devices")


def print_inventory(entries: Sequence[Entry], console: Console, *, asked: bool) -> None:
    """Print the installed, broken and missing targets; `asked`: whether installed ones were asked what they offer."""
    symbols = symbols_for(console.encoding)
    by_status = {status: [e for e in entries if e.status == status] for status in (INSTALLED, BROKEN, MISSING)}
    if by_status[INSTALLED]:
        _print_installed(by_status[INSTALLED], console, symbols, asked=asked)
    if by_status[BROKEN]:
        _print_head("Cannot be opened", console, symbols)
        for entry in by_status[BROKEN]:
            print_prose(Text(entry.reason), console, indent=_NAME, first=Text(entry.name, style="bold magenta"))
    if by_status[MISSING]:
        _print_head(f"Not installed: {CLONE}", console, symbols)
        for entry in by_status[MISSING]:
            _print_missing(entry, console)
    console.print()
    _print_notes(by_status[INSTALLED], console)


def inventory_to_json(entries: Sequence[Entry]) -> str:
    """The entries as JSON, with everything that a target could offer."""
    document = {
        "format": 1,
        "operators": list(OPERATORS),
        "dtypes": list(DTYPES),
        "targets": [entry.to_plain() for entry in entries],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _print_head(words: str, console: Console, symbols: Symbols) -> None:
    print_title(words, console)
    print_rule(symbols.rule, console)


# Installed targets ----------------------------------------------------------------------------------------


def _print_installed(entries: Sequence[Entry], console: Console, symbols: Symbols, *, asked: bool) -> None:
    versions = [entry.version or "not asked" for entry in entries]
    version = max(map(len, ("version", *versions))) + _GAP
    cells = [
        (_brief(e.operators, tuple(OPERATORS)), _brief(e.dtypes, tuple(DTYPES)), _ranges(e.devices)) if asked else ()
        for e in entries
    ]
    heads = _HEADS if asked else ()
    widths = _fitted(heads, cells, console.width - _NAME - version)
    console.print(_line("target", "version".ljust(version), heads, widths, "bold"), soft_wrap=True)
    total = _NAME + version + sum(widths) + _GAP * max(0, len(widths) - 1)
    console.print(Text(symbols.rule * max(min(console.width, 80), min(console.width, total)), style="dim"))
    for entry, told, texts in zip(entries, versions, cells, strict=True):
        wrapped = [textwrap.wrap(text, width) or [""] for text, width in zip(texts, widths, strict=True)]
        for row in range(max([1, *map(len, wrapped)])):
            name, number = (entry.name, told) if row == 0 else ("", "")
            pieces = [lines[row] if row < len(lines) else "" for lines in wrapped]
            console.print(_line(name, number.ljust(version), pieces, widths, "bold cyan"), soft_wrap=True)


def _line(name: str, version: str, pieces: Sequence[str], widths: Sequence[int], style: str) -> Text:
    line = Text.assemble((name.ljust(_NAME), style), (version, "bold" if name == "target" else "green"))
    for piece, width in zip(pieces, widths, strict=True):
        line.append(piece.ljust(width + _GAP), style="bold" if name == "target" else "")
    line.rstrip()
    return line


def _fitted(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The widths of columns that together fit in this width, unless a word would have to be broken."""
    columns = [(head, *(row[place] for row in rows)) for place, head in enumerate(heads)]
    widths = [max(map(len, column)) for column in columns]
    least = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    while sum(widths) + _GAP * max(0, len(widths) - 1) > width:
        free = [place for place in range(len(widths)) if widths[place] > least[place]]
        if not free:
            break
        widths[max(free, key=lambda place: widths[place])] -= 1
    return widths


def _brief(names: Sequence[str], every: Sequence[str]) -> str:
    """The names; if they are all or almost all that exist, words for that."""
    lacking = [name for name in every if name not in names]
    if not lacking:
        return f"all {len(every)}"
    if len(lacking) == 1 and len(every) > 2:
        return f"all but {lacking[0]}"
    return " ".join(names)


def _ranges(devices: Sequence[str]) -> str:
    """The devices; those of one kind that are numbered from 0 on are written like ``cuda:0-7``."""
    kinds: dict[str, list[str]] = {}
    for device in devices:
        kind, _, number = device.rpartition(":")
        kinds.setdefault(kind if kind and number.isdigit() else device, []).append(device)
    pieces = []
    for kind, names in kinds.items():
        numbered = len(names) > 1 and names == [f"{kind}:{number}" for number in range(len(names))]
        pieces += [f"{kind}:0-{len(names) - 1}"] if numbered else names
    return " ".join(pieces)


# Missing targets, and notes -------------------------------------------------------------------------------


def _print_missing(entry: Entry, console: Console) -> None:
    """Print how to install a missing target. Commands are not wrapped, so that they can be copied whole."""
    name = Text(entry.name.ljust(_NAME), style="bold")
    if not KNOWN[entry.name].install_command:
        console.print(name + Text(entry.install, style="dim"), soft_wrap=True)
        return
    console.print(name + Text("in an interpreter of its own:", style="dim"), soft_wrap=True)
    for command in entry.install.split(", "):
        console.print(Text(f"  {command}", style="dim"), soft_wrap=True)


def _print_notes(installed: Iterable[Entry], console: Console) -> None:
    entries = list(installed)
    if any(len(entry.operators) > 1 for entry in entries):
        for label, names in (("operators", OPERATORS), ("dtypes", DTYPES)):
            print_prose(Text(", ".join(names), style="dim"), console, indent=_NAME, first=Text(label, style="dim"))
    notes = [(entry.name, f"is run by {entry.python}") for entry in entries if entry.python]
    if any(entry.name == full_name("keras") for entry in entries):
        notes.append(("keras", f"means {full_name('keras')} here"))
    notes.append(("your function", "normspec check FILE.py:NAME --op layer_norm"))
    for label, words in notes:  # not wrapped, so that a path or a command can be copied whole
        console.print(Text(label.ljust(_NAME) + words, style="dim"), soft_wrap=True)
