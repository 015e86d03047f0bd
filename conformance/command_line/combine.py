"""Several targets, one report."""

from __future__ import annotations

from collections.abc import Sequence

from ..verdicts import Report


def combine(reports: Sequence[Report]) -> Report:
    """One report that holds the results of all, which were run one after the other from one seed."""
    if len(reports) == 1:
        return reports[0]
    return Report(
        results=tuple(result for report in reports for result in report.results),
        profile=reports[0].profile,
        seed=reports[0].seed,
        subjects=tuple(subject for report in reports for subject in report.subjects),
        partial=any(report.partial for report in reports),
        seconds=sum(report.seconds for report in reports),
    )
