"""How long the suite takes: `quick`, `standard`, and the time until a faulty function is known to be faulty.

    python benchmarks/suite_speed.py [--runs 3] [--target numpy]

Imports are excluded. Every figure is the median of several runs; on a noisy machine run it again.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import hypothesis  # noqa: F401  (imported before the clock starts, as any second run has it)

from normspec.conformance.engine import Run
from normspec.conformance.faults import FAULTS
from normspec.conformance.plan import Plan
from normspec.conformance.profiles import profile_of
from normspec.conformance.progress import Progress
from normspec.conformance.report import Report
from normspec.conformance.sound import SOUND
from normspec.conformance.specimens import target_of
from normspec.spec.operators import OPERATORS

DTYPES = ("float16", "bfloat16", "float32", "float64")


def plan(targets: list, profile: str, *, explain: bool = True) -> Plan:
    """A plan over four dtypes of these targets."""
    return Plan(targets, DTYPES, "cpu", {}, profile_of(profile), 0, explain=explain)


def timed(work: Callable[[], Report]) -> float:
    """Seconds that one run takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def sound_target(operator: str):
    """A sound function of an operator, in all four dtypes."""
    variant = next(v for v in SOUND if v.operator == operator)
    return target_of(variant.name, operator, variant.build())


def first_violation(fault) -> float | None:
    """Seconds until the first violation of a MUST or SHOULD is seen at `standard`; None if none is."""
    target = target_of(fault.name, fault.operator, fault.build())
    started, seen = time.perf_counter(), []

    def listen(progress: Progress) -> None:
        if progress.failing:
            seen.append(time.perf_counter() - started)
            raise KeyboardInterrupt

    Run(plan([target], "standard", explain=False), listen).report()
    return seen[0] if seen else None


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    for operator in OPERATORS:
        target = sound_target(operator)
        seconds = [timed(Run(plan([target], "quick")).report) for _ in range(runs)]
        print(f"quick, {operator}, four dtypes: {statistics.median(seconds):.2f} s (median of {runs})")
    every = [sound_target(operator) for operator in OPERATORS]
    seconds = [timed(Run(plan(every, "standard")).report) for _ in range(runs)]
    print(f"standard, all operators, four dtypes: {statistics.median(seconds):.1f} s (median of {runs})")
    times = [first_violation(fault) for fault in FAULTS]
    known = sorted(t for t in times if t is not None)
    print(
        f"first violation: median {statistics.median(known):.3f} s, 90% {known[int(0.9 * len(known))]:.3f} s,"
        f" worst {known[-1]:.2f} s over {len(known)} of {len(FAULTS)} faults"
    )


if __name__ == "__main__":
    main()
