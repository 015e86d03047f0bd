"""PyTorch's RMSNorm, GroupNorm and InstanceNorm at quick: they conform with their declarations, not without."""

from __future__ import annotations

import dataclasses

import pytest

from normspec import Report, Verdict
from normspec.adapters.targets import resolve

from ..runs import run

OPERATORS = ["rms_norm", "group_norm", "instance_norm"]
#: Here every convention is in effect but those of float64.
CHECKED = ("bfloat16",)
TARGET = resolve("torch", op=OPERATORS)

#: A requirement and a dtype that the bindings violate without this convention, which they declare.
NEEDED = {
    ("GN-F8", "float32"): "variance_algorithm",
    ("GN-G1", "bfloat16"): "storage",
    ("IN-G1", "bfloat16"): "storage",
    ("IN-E1", "float32"): "single_value",
    ("RM-F1", "bfloat16"): "cast",
    ("CM-D2", "bfloat16"): "mixed_dtypes",
}


@pytest.fixture(scope="module")
def report() -> Report:
    """The quick report on all of them."""
    return run(TARGET, dtypes=CHECKED)


def test_torch_conforms(report: Report) -> None:
    """No MUST is violated, every call is judged, and each known deviation shows."""
    assert report.failures() == report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)
    assert report.unseen() == ()


def test_every_binding_is_judged(report: Report) -> None:
    """Each layer and each function has passes in bfloat16."""
    judged = {(r.binding, r.dtype) for r in report.results if r.verdict is Verdict.PASS}
    assert judged == {(binding.name, dtype) for binding in TARGET.bindings for dtype in CHECKED}


@pytest.mark.parametrize(("requirement", "dtype"), NEEDED, ids=lambda one: str(one))
def test_what_is_declared_is_needed(requirement: str, dtype: str) -> None:
    """The bindings of a declaration violate the requirement without it."""
    key = NEEDED[requirement, dtype]
    prefix = {"GN": "group_norm", "IN": "instance_norm"}.get(requirement[:2], "rms_norm")
    bindings = [one for one in TARGET.bindings if one.operator == prefix and key in one.conventions]
    assert bindings
    for one in bindings:  # one at a time: of several bindings only the first runs on every case
        bare = dataclasses.replace(one, conventions={k: v for k, v in one.conventions.items() if k != key})
        found = run(dataclasses.replace(TARGET, bindings=(bare,)), dtypes=(dtype,), requirements={requirement})
        assert {r.binding for r in found.failures()} == {one.name}
