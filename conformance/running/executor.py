"""Executors judge units. This interface is all that their callers use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..engine.progress import Progress
from ..results.report import Report
from .unit import Unit

#: A unit, and the report on it alone.
Judged = tuple[Unit, Report]

#: Receives the progress of each unit, from any thread. It must return at once and never raise.
UnitListener = Callable[[Unit, Progress], None]


def finished(unit: Unit, report: Report) -> Progress:
    """The progress event of a finished unit."""
    words = f"{', '.join(unit.targets)} {unit.operator} {unit.dtype}"
    return Progress(1, 1, words, len(report.failures()))


class Executor(Protocol):
    """
    Judges the units of one request, in any order.

    ``with executor:`` opens the targets. It raises the NormspecError of the first target that cannot be opened.
    """

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...

    def units(self, seeds: Iterable[int]) -> Iterator[Unit]:
        """All units of the request, seed after seed."""
        ...

    def judged(self, units: Iterable[Unit], listener: UnitListener | None = None) -> Iterator[Judged]:
        """
        Each unit with its report, as soon as it is judged.

        ``units`` may be long. Any thread may take the next unit when a process is free to judge it. On Ctrl-C this
        raises KeyboardInterrupt. After that, or a KeyboardInterrupt elsewhere, `stop` returns the remaining reports.
        """
        ...

    def stop(self) -> Sequence[Judged]:
        """End the work in progress, and return its reports, whole or partial."""
        ...

    def subjects(self) -> tuple[Mapping[str, Any], ...]:
        """The subjects, as they stand in a report."""
        ...

    def explained(self, report: Report) -> Report:
        """The report on one seed with causes, and the declarations under which bindings would conform."""
        ...
