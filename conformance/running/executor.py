"""Executors: who judges units. Whoever keeps the reports knows no more of them than this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..engine.progress import Progress
from ..results.report import Report
from .unit import Unit

#: A unit, and the report on it alone.
Judged = tuple[Unit, Report]

#: Receives how far each unit is, from any thread; it must return at once and never raise.
UnitListener = Callable[[Unit, Progress], None]


def whole(unit: Unit, report: Report) -> Progress:
    """What is told of a unit that is done."""
    words = f"{', '.join(unit.targets)} {unit.operator} {unit.dtype}"
    return Progress(1, 1, words, len(report.failures()))


class Executor(Protocol):
    """
    Judges the units of one request, in whatever order, once its targets have been opened.

    To open them, ``with executor:``. That raises the NormspecError of the first target that cannot be had.
    """

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...

    def units(self, seeds: Iterable[int]) -> Iterator[Unit]:
        """Every unit of the request, with the cases of one seed after the other."""
        ...

    def judged(self, units: Iterable[Unit], listener: UnitListener | None = None) -> Iterator[Judged]:
        """
        Each unit with its report, as they come.

        ``units`` may be long: it is asked for one unit whenever there is somebody to judge it, by any thread. On
        Ctrl-C this ends in KeyboardInterrupt, and then, as after one anywhere else, `stop` has the rest.
        """
        ...

    def stop(self) -> Sequence[Judged]:
        """End what is in progress, and return what has been established of it: partial reports, and whole ones."""
        ...

    def subjects(self) -> tuple[Mapping[str, Any], ...]:
        """What is judged, as it stands in a report."""
        ...

    def explained(self, report: Report) -> Report:
        """The report on one seed, with the causes of its violations, and what each binding would have to declare."""
        ...
