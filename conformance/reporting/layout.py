"""Consoles to print on; and paragraphs with a hanging label, wrapped to the console, without trailing blanks."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import Console
from rich.text import Text

#: Longer lines of prose are tiring to read, even on a wide terminal.
PROSE_WIDTH = 100


#: The width if it is not known (a pipe, a file): every terminal shows it without wrapping.
PIPE_WIDTH = 80


def console_on(stream: TextIO) -> Console:
    """A console that writes prose and tables to the stream, coloured only where that is wanted."""
    width = None
    if not stream.isatty():
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdigit() and int(columns) >= 40 else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def width_of(console: Console) -> int:
    """The width that a report uses on this console."""
    return min(console.width, PROSE_WIDTH)


def rule(character: str, console: Console) -> Text:
    """A line across the report."""
    return Text(character * min(console.width, 80), style="dim")


def print_prose(body: Text, console: Console, *, indent: int = 0, first: Text | None = None) -> None:
    """
    Print a paragraph whose lines begin in column `indent`.

    `first` stands in those columns before the first line; if it is longer, it gets a line of its own.
    """
    margin = Text(" " * indent)
    lead = margin if first is None else first.copy()
    if len(lead.plain) > indent:
        lead.rstrip()
        console.print(lead, no_wrap=True, crop=True)
        lead = margin
    lead.pad_right(indent - len(lead.plain))
    for position, line in enumerate(body.wrap(console, max(10, width_of(console) - indent), overflow="fold")):
        line = Text.assemble(margin if position else lead, line)  # the style of `lead` is for `lead` alone
        line.rstrip()
        console.print(line, no_wrap=True, crop=True)
