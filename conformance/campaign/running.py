"""Runs a campaign: judges the units that are not done yet, and stores each at once."""

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
    Judge the units that are not done yet, store them in the folder, and return the summary of all.

    ``asked`` holds the targets, which replace those of the request. ``jobs`` and ``cluster`` are as in `check`. After
    Ctrl-C the summary covers the units that are done. Raises a NormspecError if a target cannot be opened, or if the
    folder holds something else.
    """
    seeds, count = seeds_of(seeds), None if jobs is None else jobs_of(jobs)
    # The record holds failures and errors in full, and only the number of advices.
    request = attrs.evolve(request, targets=expanded(asked, request.op), shrink_advice=False)
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
    """The remaining units, and the progress of judging them."""

    request: Request
    store: Store
    summary: Summary
    left: Sequence[Unit]
    listener: Listener | None
    _done: int = 0
    _total: int = 0
    _waiting: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    _figures: str = ""
    #: Seconds of judging before this command, and the time when it began.
    _before: float = 0.0
    _started: float = attrs.field(factory=time.perf_counter)

    def __attrs_post_init__(self) -> None:
        self._waiting = Counter(key.kind for unit in self.left for key in keys_of(unit))
        self._total = self._waiting.total()
        self._before = self.summary.seconds

    def go_on(self, judges: Executor) -> None:
        """Judge the remaining units. On Ctrl-C, units that other processes finished are kept too."""
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
        """Estimated seconds for the rest, if as many units are judged at a time as so far."""
        at_once = max(1.0, (self.summary.seconds - self._before) / max(time.perf_counter() - self._started, 1e-9))
        return self.summary.seconds_for(self._waiting) / at_once

    def _tell(self, unit: Unit, event: Progress) -> None:
        assert self.listener is not None
        text = f"{self._figures}; {event.text}" if self._figures else event.text
        self.listener(Progress(self._done, self._total, text, self.summary.violations))
