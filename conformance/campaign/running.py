"""A campaign at work: the units that are not done are judged one after the other, and each is stored at once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from ..engine import Run
from ..progress import Listener, Progress
from ..report import Report
from ..request import Request
from .campaign import Campaign, Key, expanded
from .record import record_of
from .store import Store
from .summary import Summary


def run(asked: Sequence[str], request: Request, seeds: range, out: Path, listener: Listener | None = None) -> Summary:
    """
    Judge what is not done yet, store it in the folder, and return what all of it amounts to.

    ``asked``: the targets, which stand in the place of the request's. After Ctrl-C the summary is of what is done.
    Raises a NormspecError where a target cannot be had, or the folder holds something else.
    """
    request = attrs.evolve(request, targets=expanded(asked, request.op))
    targets = request.open()
    try:
        named = {str(name): target for name, target in zip(request.names, targets, strict=True)}
        campaign = Campaign(tuple(asked), request, named, seeds)
        with Store.begun(out, campaign) as store:
            summary = Summary.of(store)
            left = [key for key in campaign.units() if key not in store.done]
            with contextlib.suppress(KeyboardInterrupt):  # what is done is stored
                _go_on(campaign, left, store, summary, listener)
            return summary
    finally:
        for target in targets:
            target.close()


def _go_on(campaign: Campaign, left: Sequence[Key], store: Store, summary: Summary, listener: Listener | None) -> None:
    waiting = Counter((key.target, key.operator, key.dtype) for key in left)
    for done, (key, report) in enumerate(_judged(campaign, left), start=1):
        record = record_of(key, report, campaign.request)
        store.append(record)
        summary.add(record)
        waiting[key.target, key.operator, key.dtype] -= 1
        if listener is not None:
            rest = _duration(summary.seconds_for(waiting))
            text = f"{summary.cases:,} cases, {summary.violations:,} violations, {rest} left"
            listener(Progress(done, len(left), text, summary.violations))


def _judged(campaign: Campaign, keys: Sequence[Key]) -> Iterator[tuple[Key, Report]]:
    for key in keys:
        members = campaign.members(key.target, key.operator)
        unit = Run(attrs.evolve(campaign.request, seed=key.seed).plan(members))
        report = unit.report([(key.operator, key.dtype)])
        if unit.interrupted:
            return
        yield key, report


def _duration(seconds: float) -> str:
    """A duration to be read at a glance: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
