"""The formula as a whole: y within its envelope, and data beyond the range of plain formulas."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.case import Case
from ..judging.findings import Finding
from ..judging.subject import Subject
from .registry import When, check, ordinary


def y_of(subject: Subject, case: Case) -> Iterator[Finding]:
    """Compare y with its exact value."""
    yield subject.judge_output(case, "y", subject.observe(case).outputs["y"])


check("LN-F1", "BN-F1", "RM-F1", "GN-F1", "IN-F1", every=ordinary)(y_of)


def _first_group(regime: str) -> When:
    """Cases whose first group is of this regime, even after shrinking."""
    return lambda case: case.description is not None and case.description.groups[0][0] == regime


@check(
    "LN-R1",
    "BN-R1",
    "RM-R1",
    "GN-R1",
    "IN-R1",
    when=_first_group("huge"),
    dtypes=("bfloat16", "float32"),
    raising="violates",
    plain=True,
)
def large_data(subject: Subject, case: Case) -> Iterator[Finding]:
    """Data whose squares overflow still gives its finite result."""
    y = subject.observe(case).outputs["y"]
    yield subject.judge_output(case, "y", y, range_rule=False)


@check(
    "LN-R2",
    "RM-R2",
    "GN-R2",
    "IN-R2",
    "BN-R2",
    when=_first_group("wide"),
    dtypes=("bfloat16", "float32"),
    raising="violates",
    plain=True,
    gradient=True,
)
def wide_data(subject: Subject, case: Case) -> Iterator[Finding]:
    """Gradients are right where r^3 underflows, and they do not."""
    _ = subject.observe(case).outputs
    dx = subject.observe(case).gradient("dx")
    yield subject.judge_gradient(case, "dx", dx, range_rule=False)
