"""The record of a unit: its report as one JSON object of a few kilobytes, with every violation in full."""

from __future__ import annotations

from typing import Any

import attrs

from ...adapters.remote.process import Limits
from ..judging.verdicts import Result, Verdict
from ..replay.writing import fields_given
from ..reporting.json_values import plain, result_in_json
from ..requests.command import command, in_options
from ..requests.limits import seconds_in_words, size_in_words
from ..requests.per_target import conventions_of, setting_of
from ..requests.request import Request
from ..results.ratios import BINS, add_counts
from ..results.report import Report
from ..running.unit import Unit
from .campaign import Key, keys_of


def records_of(unit: Unit, report: Report, request: Request) -> list[dict[str, Any]]:
    """The records of a finished unit, one for each target; they share its time equally."""
    found = []
    for key in keys_of(unit):
        results = tuple(result for result in report.results if result.target == key.target)
        part = attrs.evolve(report, results=results, seconds=report.seconds / len(unit.targets))
        found.append(_record(key, part, request))
    return found


def _record(key: Key, report: Report, request: Request) -> dict[str, Any]:
    requirements: dict[str, dict[str, Any]] = {}
    for result in report.results:
        found = requirements.setdefault(
            result.requirement, {"cases": 0, "advice": 0, "known": 0, "ratio": None, "at": "", "ratios": [0] * BINS}
        )
        found["cases"] += result.cases
        found["advice"] += result.verdict is Verdict.ADVICE
        if any(one.shown for one in result.known):  # the ratio of a known wrong result says nothing about sound ones
            found["known"] += 1
            continue
        add_counts(found["ratios"], result.ratios)
        if result.ratio is not None and (found["ratio"] is None or result.ratio > found["ratio"]):
            found["ratio"], found["at"] = result.ratio, result.binding
    for found in requirements.values():
        found["ratio"] = plain(found["ratio"])
        found["ratios"] = {str(place): count for place, count in enumerate(found["ratios"]) if count}
    kept = [*report.failures(), *report.errors()]
    return {
        "unit": {"target": key.target, "operator": key.operator, "dtype": key.dtype, "seed": key.seed},
        "seconds": round(report.seconds, 3),
        "cases": sum(result.cases for result in report.results),
        "counts": report.counts(),
        "requirements": requirements,
        "kept": [
            {**result_in_json(r), "again": repeat_command(r, key.seed, request), "found_on": _found_on(r)} for r in kept
        ],
        "defects": list(report.defects),
    }


def repeat_command(result: Result, seed: int, request: Request) -> str:
    """The command that judges the same target on the same cases again."""
    limits, own = request.limits, request.per_target
    usual = limits.memory == Limits().memory
    return command(
        "check",
        result.target,
        op=result.op,
        dtype=result.dtype,
        profile=request.profile,
        seed=str(seed),
        device=request.device,
        framework=request.framework_of(result.target),
        mode=request.mode or setting_of(own, result.target, "mode"),
        forward_only=request.forward_only or bool(setting_of(own, result.target, "forward_only")),
        slow=request.slow is True,
        no_slow=request.slow is False,
        time_limit="" if limits.seconds == Limits().seconds else seconds_in_words(limits.seconds),
        memory_limit="" if usual or request.device != "cpu" else size_in_words(limits.memory),
        convention={**conventions_of(own, result.target, result.op), **request.conventions},
        **in_options(request.declared_of(result.target).to_plain()),
        python=request.pythons,
    )


def _found_on(result: Result) -> dict[str, Any] | None:
    """The description of the violating case. The counterexample may be a smaller case."""
    found = result.violated_on
    if found is None:
        return None
    return {name: plain(value) for name, value in fields_given(found).items()}
