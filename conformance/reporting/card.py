"""Cards for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from ..compare.table import Kind
from ..identify.card import Card, Cards, Line
from .layout import print_prose, print_rule
from .render import printed
from .symbols import symbols_for

#: The widest title of a line, and how many characters of its numbers are shown.
_TITLE, _NUMBERS = 25, 100

#: The style of a line by its kind; the other kinds are lines that could not be measured.
_STYLES = {Kind.MEASURED: "bold", Kind.RAISES: "bold red"}


def print_identification(found: Cards, console: Console, *, brief: bool = False) -> None:
    """Print each card; with ``brief``, leave out how each line is established."""
    for card in found.cards:
        _print_card(card, console, brief=brief)
    console.print()
    if not found.cards:
        none = "It has none of the operators that were asked for."
        words = "PARTIAL: stopped before anything was measured." if found.partial else none
        print_prose(Text(words, style="bold yellow"), console)
        return
    count = sum(len(card.lines) for card in found.cards)
    established = sum(card.established for card in found.cards)
    words = f"{established} of {count} lines established, {found.seconds:.1f} s"
    print_prose(Text(f"PARTIAL: {words}" if found.partial else words, style="bold"), console)


def as_text(found: Cards, encoding: str = "utf-8") -> str:
    """The cards as a text without colour."""
    return printed(lambda console: print_identification(found, console), encoding)


def _print_card(card: Card, console: Console, *, brief: bool) -> None:
    symbols = symbols_for(console.encoding)
    console.print()
    about = f"{card.framework} {card.version}, {card.dtype} on {card.device}"
    print_prose(Text.assemble((card.op, "bold"), "   ", (card.binding, "bold cyan"), "   ", (about, "dim")), console)
    print_rule(symbols.rule, console, 100)
    if card.formula:
        print_prose(Text(card.formula, style="bold"), console, indent=2)
    if card.failing:
        print_prose(Text("Nothing is established: no call returned a result.", style="bold red"), console, indent=2)
        print_prose(Text(card.failing), console, indent=2)
        return
    subject = ""
    for line in card.lines:
        if line.subject != subject:
            subject = line.subject
            console.print()
            console.print(Text(subject, style="underline"))
        _print_line(line, console, brief=brief)


def _print_line(line: Line, console: Console, *, brief: bool) -> None:
    first = Text(f"  {line.title.ljust(_TITLE)}", style="dim")
    print_prose(Text(line.text, style=_STYLES.get(line.kind, "magenta")), console, indent=_TITLE + 2, first=first)
    if brief:
        return
    numbers = numbers_of(line.evidence)
    words = f"{line.how} {numbers}" if numbers else line.how
    print_prose(Text(words, style="dim"), console, indent=6)


def numbers_of(evidence: Mapping[str, Any]) -> str:
    """The numbers behind a line, shortened to fit in it; the JSON has all of them."""
    told = "; ".join(f"{name.replace('_', ' ')}: {_short(value)}" for name, value in evidence.items())
    words = " ".join(told.split())
    return f"[{words if len(words) <= _NUMBERS else words[: _NUMBERS - 4] + ' ...'}]" if words else ""


def _short(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, float)):
        return f"{value:.3g}" if isinstance(value, float) else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_short, value)) or "none"
    return str(value)
