"""Consoles to print on; and paragraphs with a hanging label, wrapped to the console, without trailing blanks."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

#: Longer lines of prose are tiring to read, even on a wide terminal.
PROSE_WIDTH = 100

#: The width if it is not known (a pipe, a file): every terminal shows it without wrapping.
PIPE_WIDTH = 80

#: A page, or a script or another file of Python in a folder.
_ADDRESS = re.compile(r"\S+://\S+|\S*[/\\]\S+\.py\b\S*")
_WORD = re.compile(r"\s*\S+\s*")


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


def print_line(line: Text, console: Console) -> None:
    """Print one line of a table, cut off where the console ends."""
    console.print(line, no_wrap=True, crop=True)


def print_rule(character: str, console: Console, width: int = 80) -> None:
    """Print a rule across the report, of at most this width."""
    print_line(Text(character * min(console.width, width), style="dim"), console)


def print_title(words: str, console: Console, style: str = "bold") -> None:
    """Print the title of what follows, after a blank line."""
    console.print()
    console.print(Text(words, style=style))


def print_rows(title: str, rows: Collection[tuple[str, str]], console: Console, *, indent: int) -> None:
    """Print a title, and under it labels with their words; nothing if there are no rows."""
    if rows:
        print_title(title, console)
    for label, words in rows:
        print_prose(Text(words), console, indent=indent, first=Text(label, style="cyan"))


def print_conclusion(conclusion: tuple[str, str], console: Console) -> None:
    """Print the words of a conclusion in their style, after a blank line."""
    words, style = conclusion
    console.print()
    print_prose(Text(words, style=style), console)


def print_labelled(label: str, words: str, console: Console) -> None:
    """Print a paragraph that begins with its label."""
    print_prose(Text.assemble((f"{label}: ", "bold"), words), console)


def print_prose(body: Text, console: Console, *, indent: int = 0, first: Text | None = None) -> None:
    """
    Print a paragraph whose lines begin in column `indent`.

    `first` stands in those columns before the first line; if it leaves no space after it, it gets a line of its own. An
    address stays whole, even if that makes the line too long: a terminal then breaks it so that it can be followed and
    copied.
    """
    body, margin = _harmless(body), Text(" " * indent)
    lead = Text() if first is None else _harmless(first)
    lead.rstrip()
    if lead and len(lead) >= indent:
        print_line(lead, console)
        lead = Text()
    lead.pad_right(indent - len(lead))
    for position, line in enumerate(_wrapped(body, console, max(10, width_of(console) - indent))):
        line = Text.assemble(margin if position else lead, line)  # the style of `lead` is for `lead` alone
        line.rstrip()
        if _ADDRESS.search(line.plain):
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
        else:
            print_line(line, console)


def _harmless(words: Text) -> Text:
    """The words with "?" for all that a terminal would obey, such as the colours in a message of a target."""
    kept = words.copy()
    kept.plain = "".join(one if one.isprintable() or one in "\n\t" else "?" for one in words.plain)
    return kept


def _wrapped(body: Text, console: Console, width: int) -> Iterator[Text]:
    """The lines of a paragraph; none is longer than the width, but for an address that is."""
    if all(cell_len(address) <= width for address in _ADDRESS.findall(body.plain)):
        yield from body.wrap(console, width, overflow="fold")
        return
    for paragraph in body.split(allow_blank=True):
        for line in paragraph.divide(_breaks(paragraph.plain, width)):
            line.rstrip()
            if _ADDRESS.search(line.plain):
                yield line
            else:
                yield from line.wrap(console, width, overflow="fold")


def _breaks(text: str, width: int) -> list[int]:
    """Where lines begin after the first, if no word is broken."""
    found, length = [], 0
    for word in _WORD.finditer(text):
        if length and length + cell_len(word.group().rstrip()) > width:
            found.append(word.start())
            length = 0
        length += cell_len(word.group())
    return found
