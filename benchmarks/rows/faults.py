"""How soon a faulty function is recognised."""

from __future__ import annotations

import statistics
import time
from typing import Any

from rows.judging import run_of, target_of
from rows.row import Measured, Row

#: One fault in this many, in the order of their names, so that every version has much the same sample.
ONE_IN = 15


def first_violation(fault: Any) -> float | None:
    """Seconds until the first violation of a MUST at `standard`; None if there is none."""
    target = target_of(fault.name, fault.operator, fault.build())
    seen, started = [], time.perf_counter()

    def listen(progress: Any) -> None:
        if progress.violations if hasattr(progress, "violations") else progress.failing:  # its name before
            seen.append(time.perf_counter() - started)
            raise KeyboardInterrupt

    run_of([target], "standard", listener=listen).report()
    return seen[0] if seen else None


def _forbidden_by_must(fault: Any) -> bool:
    from normspec.spec import requirement

    return requirement(fault.requirement).level.value == "MUST"


def known_to_be_faulty(every: int, _: str) -> Measured:
    """The median over the faults, and the time after which nine in ten are known."""
    from normspec.conformance.faults import FAULTS

    sample = [fault for fault in sorted(FAULTS, key=lambda fault: fault.name)[::every] if _forbidden_by_must(fault)]
    first_violation(sample[0])  # for imports on first use
    times = sorted(t for t in map(first_violation, sample) if t is not None)
    return {
        "": statistics.median(times),
        "nine in ten": times[int(0.9 * len(times))],
        "seen, a share": len(times) / len(sample),
    }


ROWS = (
    Row("fault", f"a faulty function known to be faulty, median of one fault in {ONE_IN}",
        lambda what: known_to_be_faulty(ONE_IN, what)),
    Row("faults", "the same, median of all faults", lambda what: known_to_be_faulty(1, what), long=True),
)  # fmt: skip
