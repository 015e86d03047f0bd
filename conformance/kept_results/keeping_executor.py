"""Judges a request unit by unit: each unit is looked up in the store, and put there when it is judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..engine.progress import Listener, Progress
from ..requests.profiles import foremost
from ..requests.request import Request
from ..results.report import Report
from ..running.choice import executor
from ..running.executor import Judged, UnitListener, finished
from ..running.merging import judged
from ..running.processes import Processes
from ..running.single_process import SingleProcess
from ..running.unit import Unit
from .result_store import ResultStore


def judge_and_keep(request: Request, store: ResultStore, jobs: int | None, listener: Listener | None) -> Report:
    """The report on a request, judged by ``jobs`` processes; units that are in the store are not judged again."""
    return judged(request, _KeepingExecutor(executor(request, jobs=jobs), store), listener)


class _KeepingExecutor:
    """An executor that looks up each unit in the store, and puts there the units that it judged."""

    def __init__(self, judges: Any, store: ResultStore) -> None:
        assert isinstance(judges, (SingleProcess, Processes))
        self._judges, self._store = judges, store
        self._paces: Mapping[str, str] = {}
        self._foremost: dict[str, str] = {}

    def __enter__(self) -> _KeepingExecutor:
        self._judges.__enter__()
        for offer in self._judges.offers():
            self._foremost[offer.name] = foremost(offer.dtypes)
        return self

    def __exit__(self, *exception: object) -> None:
        self._judges.__exit__(*exception)

    def units(self, seeds: Iterable[int]) -> Iterator[Unit]:
        """All units of the request."""
        return self._judges.units(seeds)

    def judged(self, units: Iterable[Unit], listener: UnitListener | None = None) -> Iterator[Judged]:
        """Each unit with its report: first the kept ones of all units, then the others as they are judged."""
        self._paces = self._judges.measure()
        asked: dict[Unit, Unit] = {}
        for unit in units:
            found = {name: self._store.unit(name, unit, *self._pace_and_dtype(name)) for name in unit.targets}
            left = tuple(name for name, report in found.items() if report is None)
            for name, report in found.items():
                if report is not None:
                    yield attrs.evolve(unit, targets=(name,)), report
                    if listener is not None and not left:
                        listener(unit, finished(unit, report))
            if left:
                asked[attrs.evolve(unit, targets=left)] = unit

        def told(part: Unit, event: Progress) -> None:
            assert listener is not None
            listener(asked[part], event)

        for unit, report in self._judges.judged(list(asked), None if listener is None else told):
            self._keep(unit, report)
            yield unit, report

    def _keep(self, unit: Unit, report: Report) -> None:
        for name in unit.targets:
            self._store.keep_unit(name, unit, *self._pace_and_dtype(name), report)

    def _pace_and_dtype(self, name: str) -> tuple[str, str]:
        """The pace of a target, and the dtype in which it is checked most thoroughly."""
        return self._paces.get(name, ""), self._foremost[name]

    def stop(self) -> Sequence[Judged]:
        """The reports on units in progress; complete ones are kept."""
        found = self._judges.stop()
        for unit, report in found:
            self._keep(unit, report)
        return found

    def subjects(self) -> tuple[Mapping[str, Any], ...]:
        """The subjects, as they stand in a report."""
        return self._judges.subjects()

    def explained(self, report: Report) -> Report:
        """The report with causes, and the declarations under which bindings would conform."""
        return self._judges.explained(report)
