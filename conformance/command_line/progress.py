"""The progress of a command on standard error: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..engine.progress import Listener
from ..engine.progress import Progress as Event
from ..reporting.numbers import duration
from ..reporting.symbols import symbols_for

#: Seconds between two lines without a terminal: often enough to see that a run is alive, in a short log.
LINE_INTERVAL = 15.0
#: Shown until the first result.
_FIRST = "opening the targets"


@contextmanager
def progress_on(stream: TextIO | None = None, every: float = LINE_INTERVAL) -> Iterator[Listener | None]:
    """
    A listener that shows the progress of a command on the stream (stderr); None if there is no stream.

    On a terminal it shows a bar, which is removed at the end; otherwise it prints a line every ``every`` seconds.
    Meanwhile what targets print goes to standard error, since it is no part of the result, and warnings that they cause
    (an overflow in a hostile case) are hidden: verdicts say what came of them.
    """
    stream = sys.stderr if stream is None else stream
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        if stream is None:
            yield None
        else:
            with _bar(stream) if stream.isatty() else _lines(stream, every) as listener:
                yield listener


@contextmanager
def _bar(stream: TextIO) -> Iterator[Listener]:
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    spinner = "dots" if symbols_for(console.encoding).rule != "-" else "line"
    columns = (
        SpinnerColumn(spinner),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[violations]}", style="bold red", markup=False),
        TextColumn("{task.description}", style="dim", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(_FIRST, total=1, violations="", left="")

        def listen(event: Event) -> None:
            left, violations = _time_left(event), _violations(event)
            bar.update(task, completed=event.share, total=1, description=event.text, left=left, violations=violations)

        yield listen


@contextmanager
def _lines(stream: TextIO, every: float) -> Iterator[Listener]:
    last, over = Event(0, 1, _FIRST), threading.Event()

    def listen(event: Event) -> None:
        nonlocal last
        last = event

    def write() -> None:
        while not over.wait(every):
            with contextlib.suppress(OSError, ValueError):  # the reader has closed the stream
                print(line(last), file=stream, flush=True)

    thread = threading.Thread(target=write, daemon=True, name="normspec: progress")
    thread.start()
    try:
        yield listen
    finally:
        over.set()
        thread.join()


def line(event: Event) -> str:
    """The progress of a command in one line: `[ 37 %] mine.py:layer_norm layer_norm float32; about 40 s left`."""
    told = "; ".join(filter(None, (event.text, _time_left(event), _violations(event))))
    return f"[{100 * event.share:3.0f} %] {told}"


def _time_left(event: Event) -> str:
    # The share counts cases: once all are judged, nobody knows how long shrinking and the search for causes take.
    if event.seconds_left is None or event.share >= 1:
        return ""
    return f"about {duration(event.seconds_left)} left"


def _violations(event: Event) -> str:
    return f"{event.violations} violation{'' if event.violations == 1 else 's'}" if event.violations else ""
