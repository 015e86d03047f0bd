"""The whole report for a terminal or a log."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console

from ..results.outcome import Outcome
from .closing import print_closing
from .layout import console_on
from .symbols import symbols_for
from .target_section import PrintedAdvice, print_target, print_target_heading, print_target_verdict


def print_report(report: Outcome, console: Console) -> None:
    """
    Print the section of each target, and the verdict on all of them.

    Nothing that a target said is read as markup. Symbols are ASCII if the console's encoding has no others.
    """
    symbols = symbols_for(console.encoding)
    told: PrintedAdvice = {}
    count = len(report.targets)
    for number, name in enumerate(report.targets, 1):
        alone = report.target(name)
        if count > 1:
            print_target_heading(name, number, count, console, symbols)
        print_target(alone, told, console, symbols, legend=report if number == 1 else None)
        if count > 1:
            print_target_verdict(name, alone, console)
    print_closing(report, console, symbols)


def as_text(report: Outcome, encoding: str) -> str:
    """The same without colour, in characters that the encoding has, at the width for a pipe."""
    return without_edges(printed(lambda console: print_report(report, console), encoding))


def printed(show: Callable[[Console], None], encoding: str) -> str:
    """What is shown on a console, as a text without colour, in characters that the encoding has."""
    stream = _TextStream(encoding)
    show(console_on(stream))
    return stream.getvalue()


def without_edges(text: str) -> str:
    """The text without empty lines before and after it."""
    return "\n".join(text.strip("\n").splitlines())


class _TextStream(io.StringIO):
    """A text stream with an encoding of its own."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The encoding, which a console asks for."""
        return self._encoding
