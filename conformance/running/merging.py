"""Merges the reports on all units into one report, for any executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ..engine.order import Order
from ..engine.progress import Listener
from ..requests.request import Request
from ..results.outcome import NOT_EXPLAINED
from ..results.report import Report
from .executor import Executor, Judged
from .share import Share
from .unit import Unit


def judged(request: Request, executor: Executor, listener: Listener | None = None) -> Report:
    """
    The report on a request; on Ctrl-C a partial report.

    Raises the NormspecError of the first target that cannot be opened.
    """
    with executor:
        found: list[Judged] = []
        units: list[Unit] = []
        interrupted, started, share = False, time.perf_counter(), None
        try:
            units = list(executor.units([request.seed]))
            share = None if listener is None else Share(units, executor.subjects(), listener)
            for one in executor.judged(units, share):
                found.append(one)
        except KeyboardInterrupt:
            interrupted = True
            found.extend(executor.stop())
        found.sort(key=_order(units))  # several processes end their units in any order
        report = merged_report(request, executor.subjects(), [report for _, report in found], interrupted=interrupted)
        if share is not None and report.failures():
            share.looking_for_causes()
        try:
            report = executor.explained(attrs.evolve(report, seconds=time.perf_counter() - started))
        except KeyboardInterrupt:  # all verdicts exist; only their explanations are missing, and the report says so
            report = attrs.evolve(report, notes=(*report.notes, NOT_EXPLAINED))
        return attrs.evolve(report, seconds=time.perf_counter() - started)


def _order(units: Sequence[Unit]) -> Callable[[Judged], int]:
    """The sort key of judged units: their place among all units. A unit may have been split by its targets."""
    places = {(unit.operator, unit.dtype, name): place for place, unit in enumerate(units) for name in unit.targets}
    return lambda judged: min(places[judged[0].operator, judged[0].dtype, name] for name in judged[0].targets)


def merged_report(
    request: Request, subjects: Sequence[Mapping[str, Any]], reports: Sequence[Report], *, interrupted: bool = False
) -> Report:
    """The report merged from reports on units of one seed."""
    place = Order(subjects, request.dtypes).place
    stopped = interrupted or any(part.partial and not part.lost for part in reports)
    return Report(
        results=tuple(sorted((one for part in reports for one in part.results), key=place)),
        profile=request.profile,
        seed=reports[0].seed if reports else request.seed,
        subjects=tuple(subjects),
        partial=stopped or any(part.partial for part in reports),
        lost=() if stopped else tuple(dict.fromkeys(name for part in reports for name in part.lost)),
        defects=tuple(defect for part in reports for defect in part.defects),
        taken=tuple(sorted((one for part in reports for one in part.taken), key=place)),
        notes=_without_what_is_asked(request, subjects),
        only=request.only,
        binding=request.binding,
        require=request.require,
    )


def _without_what_is_asked(request: Request, subjects: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A note for each named target that nothing asked for is about."""
    found = {subject["target"] for subject in subjects}
    lacking = [one for one in request.names if isinstance(one, str) and one not in found]
    return tuple(f"{one}: nothing in the request applies to it" for one in lacking if request.only or request.binding)
