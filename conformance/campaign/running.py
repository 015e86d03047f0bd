"""A campaign at work: what is not done yet is judged, and each unit is stored as soon as it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from ..engine.progress import Listener, Progress
from ..reporting.numbers import duration
from ..requests.arguments import seeds_of
from ..requests.limits import jobs_of
from ..requests.request import Request
from ..results.report import Report
from ..running.choice import executor
from ..running.executor import Executor
from ..running.unit import Unit
from .campaign import Campaign, expanded, keys_of, without
from .record import records_of
from .store import Store
from .summary import Summary


def run(
    asked: Sequence[str],
    request: Request,
    seeds: range,
    out: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    listener: Listener | None = None,
) -> Summary:
    """
    Judge what is not done yet, store it in the folder, and return what all of it amounts to.

    ``asked``: the targets, which stand in the place of the request's. ``jobs`` and ``cluster``: who judges, as of
    `check`. After Ctrl-C the summary is of what is done.
    Raises a NormspecError where a target cannot be had, or the folder holds something else.
    """
    seeds, count = seeds_of(seeds), None if jobs is None else jobs_of(jobs)
    request = attrs.evolve(request, targets=expanded(asked, request.op))
    with executor(request, jobs=count, cluster=cluster, seeds=len(seeds)) as judges:
        campaign = Campaign(tuple(asked), request, judges.subjects(), seeds)
        units = campaign.units(judges.units(seeds))
        with Store.begun(out, campaign.asked_for(units)) as store:
            summary = Summary.of(store)
            left = [one for unit in units if (one := without(unit, store.done)).targets]
            _Work(request, store, summary, left, listener).go_on(judges)
    return summary


@attrs.define
class _Work:
    """The units that are left, while they are judged."""

    request: Request
    store: Store
    summary: Summary
    left: Sequence[Unit]
    listener: Listener | None
    _done: int = 0
    _total: int = 0
    _waiting: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    _figures: str = ""
    #: The seconds of judging that were there before, and when this one began.
    _before: float = 0.0
    _started: float = attrs.field(factory=time.perf_counter)

    def __attrs_post_init__(self) -> None:
        self._waiting = Counter(key.kind for unit in self.left for key in keys_of(unit))
        self._total = self._waiting.total()
        self._before = self.summary.seconds

    def go_on(self, judges: Executor) -> None:
        """Judge them; on Ctrl-C what other processes have finished by then is kept too."""
        listener = self._tell if self.listener is not None else None
        try:
            for unit, report in judges.judged(self.left, listener):
                self._keep(unit, report)
        except KeyboardInterrupt:
            for unit, report in judges.stop():
                if not report.partial:
                    self._keep(unit, report)

    def _keep(self, unit: Unit, report: Report) -> None:
        records = records_of(unit, report, self.request)
        self.store.append(records)
        for record in records:
            self.summary.add(record)
        keys = keys_of(unit)
        self._waiting.subtract(key.kind for key in keys)
        self._done += len(keys)
        self._figures = (
            f"{self.summary.cases:,} cases, {self.summary.violations:,} violations, "
            f"about {duration(self._seconds_left())} left"
        )

    def _seconds_left(self) -> float:
        """How long the rest takes with as many units at a time as were judged so far."""
        at_once = max(1.0, (self.summary.seconds - self._before) / max(time.perf_counter() - self._started, 1e-9))
        return self.summary.seconds_for(self._waiting) / at_once

    def _tell(self, unit: Unit, event: Progress) -> None:
        assert self.listener is not None
        text = f"{self._figures}; {event.text}" if self._figures else event.text
        self.listener(Progress(self._done, self._total, text, self.summary.violations))
