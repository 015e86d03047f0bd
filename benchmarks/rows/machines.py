"""
What many machines would gain, on paper: units of a run are measured here, and assigned to machines by calculation.

A unit is one operator in one dtype. More machines do not shorten three things: opening the targets, which all machines
do at the same time; the longest unit; and the search for what a function would have to declare, which begins when all
units are done. (The cost of moving a unit and its report is left out: some kilobytes each.)
"""

from __future__ import annotations

import heapq
import importlib.util
import subprocess
import sys
import time
from collections.abc import Sequence

from rows.checks import FUNCTIONS, report
from rows.judging import run_of
from rows.row import DTYPES, Measured, NotThere, Row

MACHINES = (1, 2, 4, 8, 16, 64)


def makespan(units: Sequence[float], machines: int) -> float:
    """When the last unit is done, if the longest units go first, each to the machine that is free first."""
    free = [0.0] * machines
    for seconds in sorted(units, reverse=True):
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def model(units: Sequence[float], opening: float, excuses: float) -> Measured:
    """How many times faster several machines are, and the limit."""
    alone, serial = opening + sum(units) + excuses, opening + excuses
    speedups = {f"{m} machines, times": alone / (serial + makespan(units, m)) for m in MACHINES}
    return {
        **speedups,
        "any number, times": alone / (serial + max(units)),
        "one machine": alone,
        "opening targets": opening,
        "the longest unit": max(units),
        "the search for excuses": excuses,
    }


def of_torch(profile: str, seeds: int, _: str) -> Measured:
    """Units of PyTorch's layers, each measured by itself; further seeds are assumed to cost as much as the first."""
    if importlib.util.find_spec("torch") is None:
        raise NotThere("torch is not installed")
    started = time.perf_counter()
    subprocess.check_call([sys.executable, "-c", "from normspec.adapters.targets import resolve; resolve('torch')"])
    opening = time.perf_counter() - started

    from normspec.adapters.targets import resolve
    from normspec.conformance.diagnosis.unnamed import explained

    target = resolve("torch")
    operators = list(dict.fromkeys(binding.operator for binding in target.bindings))
    run_of([target], "quick", dtypes=("float32",)).report([(operators[0], "float32")])  # for its imports
    run = run_of([target], profile, explain=True)
    units = []
    for operator in operators:
        for dtype in DTYPES:
            started = time.perf_counter()
            run.report([(operator, dtype)])
            units.append(time.perf_counter() - started)
    report, started = run.report([]), time.perf_counter()  # the search for all of them
    explained(run, report)
    return model(units * seeds, opening, (time.perf_counter() - started) * seeds)


def on_a_cluster(workers: int) -> float:
    """Seconds for a check of PyTorch's layers and of a function in a file, on workers of one thread each."""
    from distributed import LocalCluster

    own = f"{FUNCTIONS / 'in_torch.py'}:layer_norm"
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        where = {"cluster": cluster.scheduler_address}
        report(own, **where, op="layer_norm", profile="quick", dtypes=("float32",))  # for imports on first use
        return report(("torch", own), **where, op="layer_norm", profile="standard").seconds


def two_workers(_: str) -> Measured:
    """The share of one worker's time that two take."""
    if any(importlib.util.find_spec(one) is None for one in ("torch", "distributed")):
        raise NotThere("torch or distributed is not installed")
    one, two = on_a_cluster(1), on_a_cluster(2)
    return {"one": one, "two": two, "two against one, times": two / one}


ROWS = (
    Row("machines", "what machines would give a check of torch at quick", lambda what: of_torch("quick", 1, what)),
    Row("machines-seeds", "the same with 64 seeds, as in a campaign", lambda what: of_torch("quick", 64, what)),
    Row("two-workers", "check torch and a function, layer_norm, standard, on workers of a cluster", two_workers,
        long=True),
)  # fmt: skip
