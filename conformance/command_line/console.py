"""Consoles for the table and for the progress shown beside it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..progress import Listener
from ..progress import Progress as Event
from ..reporting.symbols import symbols_for


@contextmanager
def progress_on(stream: TextIO | None = None) -> Iterator[Listener | None]:
    """
    A listener that draws a bar on the stream (stderr) while it works; None where that is no terminal.

    Warnings that targets cause (an overflow in a hostile case) are kept from the stream meanwhile: a verdict says what
    came of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from _listeners(stream)


def _listeners(stream: TextIO | None) -> Iterator[Listener | None]:
    stream = sys.stderr if stream is None else stream
    if stream is None or not stream.isatty():
        yield None
        return
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    spinner = "dots" if symbols_for(console.encoding).rule != "-" else "line"
    columns = (
        SpinnerColumn(spinner),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[failing]}", style="bold red", markup=False),
        TextColumn("{task.description}", style="dim", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1, failing="")

        def listen(event: Event) -> None:
            failing = f"{event.failing} failing" if event.failing else ""
            bar.update(task, completed=event.done, total=max(event.total, 1), description=event.text, failing=failing)

        yield listen
