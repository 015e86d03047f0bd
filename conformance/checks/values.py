"""The formula: y within the envelope, on the data that shows one thing at a time."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.case import Case
from ..findings import Finding
from ..subject import Subject
from .registry import BOTH, check, ordinary, tagged


def y_of(subject: Subject, case: Case) -> Iterator[Finding]:
    """Compare y with its exact value."""
    yield subject.judge_output(case, "y", subject.observe(case).outputs["y"])


#: Requirements that are the formula on data which isolates one of its parts, and the tag of that data.
_PARTS = {
    "F2": "few",
    "F3": "near-eps",
    "F4": "exact-eps",
    "F5": "affine",
    "F6": "none",
    "F7": "axes",
    "F8": "offset",
}

check("LN-F1", "BN-F1", when=ordinary)(y_of)
for _part, _tag in _PARTS.items():
    # Of the variance of a batch nothing is left in inference.
    check(f"LN-{_part}", f"BN-{_part}", when=tagged(_tag), modes=None if _part in ("F2", "F8") else BOTH)(y_of)


@check("LN-R1", "BN-R1", when=tagged("range"), dtypes=("bfloat16", "float32"), raising="violates")
def large_data(subject: Subject, case: Case) -> Iterator[Finding]:
    """Data whose squares overflow still has its finite result."""
    if case.description and case.description.groups[0][0] == "huge":
        y = subject.observe(case).outputs["y"]
        yield subject.judge_output(case, "y", y, range_rule=False)


@check(
    "LN-R2",
    "BN-R2",
    when=tagged("range"),
    dtypes=("bfloat16", "float32"),
    raising="violates",
    gradient=True,
)
def wide_data(subject: Subject, case: Case) -> Iterator[Finding]:
    """Gradients hold where r^3 underflows although they do not."""
    if case.description and case.description.groups[0][0] == "wide":
        _ = subject.observe(case).outputs
        dx = subject.observe(case).gradients["dx"]
        yield subject.judge_gradient(case, "dx", dx, range_rule=False)
