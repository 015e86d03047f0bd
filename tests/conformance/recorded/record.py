"""
What the judge does on sound functions: how many cases and values each check compares, and with which envelopes.

    python -m tests.conformance.recorded.record

writes it anew, after an intended change of cases, checks or envelopes. Read the differences before you commit them.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from normspec.adapters.targets import resolve
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.engine.engine import Run
from normspec.conformance.engine.tally import findings
from normspec.conformance.judging import findings as judging
from normspec.conformance.judging.library import fitted
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.spec.operators import OPERATORS

FILE = Path(__file__).with_name("recorded.json")

#: One dtype that is judged by the exact reference, and two that are judged by a float64 evaluation, with different
#: ranges.
DTYPES = ("float64", "float32", "float16")


@attrs.define
class Counts:
    """What a check did in one operator and dtype."""

    #: Cases that the check ran on, and its findings there, judged or not.
    cases: int = 0
    findings: int = 0
    judged: int = 0
    #: Elements compared within an envelope, and the sum of the binary logarithms of these envelopes.
    elements: int = 0
    envelopes: float = 0.0


@contextmanager
def _watched(counts: Counts) -> Iterator[None]:
    """Count the comparisons within envelopes."""
    ratios = judging.ratios

    def counting(got: np.ndarray, exact: Any, envelope: np.ndarray, *, where: np.ndarray | None = None) -> np.ndarray:
        found = ratios(got, exact, envelope, where=where)
        bound = np.broadcast_to(envelope, found.shape)[found >= 0]
        counts.elements += bound.size
        counts.envelopes += float(np.log2(bound[bound > 0]).sum())
        return found

    judging.ratios = counting
    try:
        yield
    finally:
        judging.ratios = ratios


def recorded(operator: str, dtype: str) -> dict[str, Counts]:
    """What each check does with the NumPy target on the cases of `quick`."""
    target = resolve("numpy", op=(operator,))
    (binding,) = target.bindings
    profile = profile_of("quick")
    run = Run(Plan((target,), (dtype,), "cpu", {}, profile, 0, explain=False, slow=False))
    subject = run.subject(target, binding, dtype)
    library, found = subject.new_library(), defaultdict[str, Counts](Counts)
    with np.errstate(all="ignore"):
        for description in profile.cases(operator, 0):
            fit = fitted(description, binding)
            if fit is None:
                continue
            case = library.case(fit)
            for check in checks_of(operator):
                if dtype in check.dtypes and check.when(case):
                    counts = found[check.requirement]
                    counts.cases += 1
                    with _watched(counts):
                        given = findings(check, subject, case, whole=True)
                    counts.findings += len(given)
                    counts.judged += sum(one.judged for one in given)
            case.forget_truths()
            subject.forget()
    return dict(sorted(found.items()))


def written() -> dict[str, dict[str, dict[str, Counts]]]:
    """What is on record, by operator, dtype and requirement."""
    return {
        operator: {dtype: {name: Counts(*counts) for name, counts in rows.items()} for dtype, rows in dtypes.items()}
        for operator, dtypes in json.loads(FILE.read_text(encoding="utf-8")).items()
    }


def different(one: Counts, other: Counts) -> bool:
    """Whether two records differ. LN-F5 and BN-F8 take envelopes from results, whose last digits processors change."""
    counted = attrs.astuple(one)[:-1] == attrs.astuple(other)[:-1]
    return not (counted and math.isclose(one.envelopes, other.envelopes, rel_tol=1e-11, abs_tol=1e-3))


def main() -> None:
    """Write the record: a line for each requirement."""
    lines = []
    for operator in OPERATORS:
        dtypes = []
        for dtype in DTYPES:
            rows = [
                f"   {json.dumps(name)}: {json.dumps(attrs.astuple(counts))}"
                for name, counts in recorded(operator, dtype).items()
            ]
            dtypes.append(f'  "{dtype}": {{\n' + ",\n".join(rows) + "}")
        lines.append(f' "{operator}": {{\n' + ",\n".join(dtypes) + "}")
    FILE.write_text("{\n" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
