"""Words for the results that were kept from earlier runs."""

from __future__ import annotations

from ..results.outcome import Outcome
from .wording import several


def kept_in_words(report: Outcome) -> list[str]:
    """A sentence for each point in time from which results were kept; none if all are new."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in report.targets:
        results = [one for one in report.results if one.target == name]
        kept = [one.kept for one in results if one.kept]
        if kept:
            share = "" if len(kept) == len(results) else f", {len(kept):,} of {len(results):,} results"
            found.setdefault((min(kept), share), []).append(name)
    return [
        f"results of {several(names)} are from {_in_words(since)}{share}, because nothing that they "
        "depend on has changed; --no-cache judges them again"
        for (since, share), names in found.items()
    ]


def _in_words(since: str) -> str:
    """`2026-11-23T09:12:05Z` as `2026-11-23 09:12 UTC`."""
    return f"{since[:16].replace('T', ' ')} UTC"
