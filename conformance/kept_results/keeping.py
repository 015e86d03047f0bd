"""
Reports from kept results: only the targets without one are judged.

Kept are reports on targets that have not changed, and units of an interrupted run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...spec.errors import NormspecError
from ..engine.order import Order
from ..engine.progress import Listener
from ..kept.cache_folder import results_store
from ..requests.request import Request
from ..results.report import Report
from .result_store import ResultStore

#: The note of a run that was interrupted, and whose results so far are kept.
_TO_GO_ON = "stopped before the end: the same command with --resume goes on (resume=True in Python)"


class NothingToResume(NormspecError):
    """There are no kept results of an interrupted run that this one could continue."""


def report_on(
    request: Request,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    resume: bool = False,
    listener: Listener | None = None,
) -> Report:
    """
    The report on a request; only targets without kept results are judged.

    With ``resume``, continue the last run of this request, if it was interrupted, even if its targets cannot be
    followed. Raises the NormspecError of the first target that cannot be opened, or NothingToResume.
    """
    started, names = time.perf_counter(), request.names
    targets = [name for name in names if isinstance(name, str)]
    # A callable of this process has no file that determines it, and the machines of a cluster have their own files.
    store = results_store(request.cache) if cluster is None and len(targets) == len(names) else None
    if store is None:
        if resume:
            raise NothingToResume(_why_not(request, cluster))
        from ..running.choice import executor
        from ..running.merging import judged

        return judged(request, executor(request, jobs=jobs, cluster=cluster), listener)
    interdependent = _is_interdependent(request)
    kept = ResultStore.of(store, request, targets, interdependent=interdependent, resume=resume)
    reports = {name: report for name in targets if (report := kept.whole(name)) is not None}
    left = [name for name in targets if name not in reports or (interdependent and len(reports) < len(targets))]
    if left:
        part = attrs.evolve(request, targets=tuple(left), part=request.part or len(left) < len(targets))
        # Import the judging code only if something is left: the import takes longer than the rest of a second run.
        from .keeping_executor import judge_and_keep

        found = judge_and_keep(part, kept, jobs, listener)
        kept.keep_whole(left, found)
        reports = {**{name: report for name, report in reports.items() if name not in left}, "": found}
    report = _merged_report(request, targets, list(reports.values()))
    if any(one.partial and not one.lost for one in reports.values()):
        report = attrs.evolve(report, notes=(*report.notes, _TO_GO_ON))
    return attrs.evolve(report, seconds=time.perf_counter() - started) if set(reports) != {""} else report


def results_of(request: Request) -> ResultStore | None:
    """The kept results of the units of a request on one target; None for several targets, or one that is always run."""
    name, store = request.names[0], results_store(request.cache)
    if len(request.names) > 1 or not isinstance(name, str) or store is None:
        return None
    return ResultStore.of_one_target(store, request, name, interdependent=_is_interdependent(request))


def _is_interdependent(request: Request) -> bool:
    """Whether the request has options that may be about only some targets, so that results depend on the others."""
    return bool(request.only or request.binding or request.require or request.conventions)


def _why_not(request: Request, cluster: str | None) -> str:
    if cluster is not None:
        return "--resume goes on with a run on this machine: a cluster's is a campaign (normspec campaign)"
    if any(not isinstance(name, str) for name in request.names):
        return "resume goes on with targets that have a name: FILE.py:NAME, or package.module:NAME"
    return "--resume needs what the interrupted run has kept: go without --no-cache, or name its --cache-dir"


def _merged_report(request: Request, targets: Sequence[str], reports: Sequence[Report]) -> Report:
    """The report merged from reports on some of the targets each."""
    if len(reports) == 1:
        return reports[0]
    order = {name: place for place, name in enumerate(targets)}

    def place(one: Any) -> int:
        return order[one["target"] if isinstance(one, Mapping) else one.target]

    subjects = sorted((one for report in reports for one in report.subjects), key=place)
    among = Order(subjects, request.dtypes).place
    return attrs.evolve(
        reports[-1],
        subjects=tuple(subjects),
        results=tuple(sorted((one for report in reports for one in report.results), key=among)),
        taken=tuple(sorted((one for report in reports for one in report.taken), key=among)),
        causes=tuple(sorted((one for report in reports for one in report.causes), key=place)),
    )
