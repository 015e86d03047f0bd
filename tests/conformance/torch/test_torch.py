"""PyTorch's own layers and compositions of them, at quick: they conform with their declarations, not without."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from normspec import Report, Verdict
from normspec.adapters.target import Target
from normspec.adapters.targets import resolve

from ..runs import DTYPES, others_at_night, run

BATCH_NORMS = {
    "torch.nn.BatchNorm1d",
    "torch.nn.BatchNorm2d",
    "torch.nn.BatchNorm3d",
    "torch.nn.functional.batch_norm",
}
LAYER_NORMS = {"torch.nn.LayerNorm", "torch.nn.functional.layer_norm"}
OPERATORS = ["layer_norm", "batch_norm"]

#: For a requirement and a dtype: the bindings that deviate from it, and the convention that they declare.
DECLARED: Mapping[tuple[str, str], tuple[set[str], str]] = {
    ("BN-S2", "float32"): (BATCH_NORMS, "running_variance=bessel"),
    ("BN-S3", "float64"): (BATCH_NORMS, "running_variance=bessel"),
    ("BN-E1", "float32"): (BATCH_NORMS, "single_value=error"),
    ("BN-E1", "bfloat16"): (BATCH_NORMS, "single_value=error"),
    ("BN-E5", "float32"): (BATCH_NORMS, "single_value=error"),
    ("BN-G1", "bfloat16"): (BATCH_NORMS, "storage=H2"),
    ("LN-G1", "bfloat16"): (LAYER_NORMS, "storage=H2"),
    ("LN-G2", "float16"): (LAYER_NORMS, "storage=H2"),
}


@pytest.fixture(scope="module")
def torch_target() -> Target:
    """PyTorch's bindings of the two normalisations."""
    return resolve("torch", op=OPERATORS)


@pytest.fixture(scope="module")
def report(torch_target: Target) -> Report:
    """The quick report on all of them, in all four dtypes."""
    return run(torch_target, dtypes=DTYPES)


def test_torch_conforms(report: Report) -> None:
    """No MUST is violated, nothing is left unjudged, and the exit status is 0."""
    assert report.failures() == ()
    assert report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)


def test_every_binding_is_judged_in_every_dtype(torch_target: Target, report: Report) -> None:
    """Each layer and each function has passes in float16, bfloat16, float32 and float64."""
    judged = {(r.binding, r.dtype) for r in report.results if r.verdict is Verdict.PASS}
    assert judged == {(binding.name, dtype) for binding in torch_target.bindings for dtype in DTYPES}


def test_nothing_is_lacking(report: Report) -> None:
    """PyTorch has every derivative, second order and forward mode too: no requirement is unsupported."""
    assert {(r.binding, r.requirement, r.reason) for r in report.results if r.verdict is Verdict.UNSUPPORTED} == set()


@pytest.mark.parametrize(("requirement", "dtype"), DECLARED)
def test_a_declared_convention_is_confirmed(report: Report, requirement: str, dtype: str) -> None:
    """Every binding that declares a convention deviates where it shows, and names the convention."""
    bindings, convention = DECLARED[requirement, dtype]
    found = [r for r in report.results if (r.requirement, r.dtype) == (requirement, dtype)]
    assert {r.binding for r in found} == bindings
    for one in found:
        assert one.verdict is Verdict.DEVIATES
        assert f"{convention} (declared by the binding)" in one.reason


def test_layer_norm_deviates_in_16_bits_alone(report: Report) -> None:
    """In float32 and float64 both layer_norm bindings follow the normative choices, except for derivatives of those."""
    nested = {"LN-G9", "LN-G13", "LN-G14"}
    deviating = {
        r.dtype
        for r in report.results
        if r.binding in LAYER_NORMS and r.verdict is Verdict.DEVIATES and r.requirement not in nested
    }
    assert deviating == {"float16", "bfloat16"}


def test_squares_that_overflow_are_advice(report: Report) -> None:
    """LN-R1 and BN-R1 are violated in the dtypes whose squares overflow in float32, as advice."""
    advised = {(r.binding, r.dtype) for r in report.advice() if r.requirement in ("LN-R1", "BN-R1")}
    assert advised == {(binding, dtype) for binding in BATCH_NORMS | LAYER_NORMS for dtype in ("bfloat16", "float32")}


@pytest.mark.parametrize(
    ("requirement", "dtype"),
    others_at_night([key for key in DECLARED if "bfloat16" not in key], [("BN-S2", "float32"), ("BN-E1", "float32")]),
)
def test_undeclared_it_fails_and_the_convention_is_named(torch_target: Target, requirement: str, dtype: str) -> None:
    """Stripped of its declarations a binding violates the requirement, and the failure names what to declare."""
    bindings, convention = DECLARED[requirement, dtype]
    stripped = [
        dataclasses.replace(b, conventions={}, reasons={}, known_violations=())
        for b in torch_target.bindings
        if b.name in bindings
    ]
    target = dataclasses.replace(torch_target, bindings=tuple(stripped))
    report = run(target, dtypes=(dtype,), requirements={requirement}, explain=True)
    assert {r.binding for r in report.failures()} == bindings
    assert {subject["passes_under"] for subject in report.subjects} == {(convention,)}
