"""Who judges changes no verdict in the library: several processes and a cluster report what one process does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from distributed import LocalCluster

from normspec.conformance.faults import FAULTS, Fault
from normspec.conformance.kept.cache_folder import NO_CACHE
from normspec.conformance.requests.library_names import FAULT_PREFIX, SOUND_PREFIX
from normspec.conformance.requests.request import Request
from normspec.conformance.running.choice import executor
from normspec.conformance.running.merging import merged_report
from normspec.conformance.sound import DECLARED, SOUND, Sound

#: Functions in one run, which share exact values. They are of several operators, so that there are units to hand out.
_TOGETHER = 40

#: Parts of the library, so that some can be run alone.
_PARTS = 8


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of two workers in their own processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", worker_dashboard_address=None
    ) as found:
        yield found.scheduler_address


def told(targets: tuple[str, ...], **where: Any) -> dict[str, Any]:
    """The merged report. Cases are not shrunk, nor causes looked for: both follow from the verdicts, and take long."""
    request = Request(
        targets=targets, op=None, framework=None, dtypes=("float32",), device="cpu", conventions={}, profile="quick",
        seed=0, slow=None, cache=NO_CACHE, explain=False,
    )  # fmt: skip
    with executor(request, **where) as judge:
        reports = [report for _, report in judge.judged(list(judge.units([0])))]
        return json.loads(merged_report(request, judge.subjects(), reports).to_json())


def _remembers(one: Fault | Sound) -> bool:
    return isinstance(one, Fault) and (one.kind == "state" or one.requirement.startswith("CM-P"))


def runs(*, remembers: bool) -> list[tuple[str, ...]]:
    """Names of functions that remember earlier calls, or of those that do not, run by run."""
    library = [(FAULT_PREFIX, one) for one in FAULTS] + [(SOUND_PREFIX, one) for one in (*SOUND, *DECLARED)]
    there = [(prefix + one.name, one.operator) for prefix, one in library if _remembers(one) is remembers]
    place = {name: sum(op == operator for _, op in there[:at]) for at, (name, operator) in enumerate(there)}
    mixed = sorted(place, key=place.__getitem__)  # the first of each operator, the second of each, ...
    return [tuple(mixed[start : start + _TOGETHER]) for start in range(0, len(mixed), _TOGETHER)]


def violating(found: dict[str, Any]) -> set[str]:
    """The functions with a violation or advice."""
    return {result["target"] for result in found["results"] if result["verdict"] in ("fail", "advice")}


def ensure_alike(targets: tuple[str, ...], *wheres: Mapping[str, Any], remembers: bool) -> None:
    """
    One process and others report the same on some functions.

    A function that remembers earlier calls is found by all. What it then returns depends on the calls of its process.
    """
    alone = told(targets, jobs=1)
    for where in wheres:
        found = told(targets, **where)
        if remembers:
            assert violating(found) == violating(alone), (where, targets)
        else:
            assert found == alone, (where, targets)


@pytest.mark.campaign
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("remembers", [True, False])
def test_processes_and_a_cluster_report_the_same(remembers, part, cluster):
    """By one process, two, four, and two workers of a cluster: some ten minutes a part, most of them the cluster's."""
    for targets in runs(remembers=remembers)[part::_PARTS]:
        ensure_alike(targets, {"jobs": 2}, {"jobs": 4}, {"cluster": cluster}, remembers=remembers)
