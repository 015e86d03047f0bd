"""ONNX Runtime and onnx.reference, at quick: they conform under their declared conventions, and have no gradients."""

from __future__ import annotations

import dataclasses

import pytest

from normspec import Report, Verdict
from normspec.adapters.onnx import reference_target, target

from ..runs import DTYPES, run

TARGETS = {"onnxruntime": target, "onnx-reference": reference_target}

#: For each target, the dtypes that it takes.
TAKEN = {"onnxruntime": {"float16", "float32", "float64"}, "onnx-reference": set(DTYPES)}

#: A convention, and a requirement and a dtype in which it shows.
DECLARED = [
    ("onnxruntime", "LN-F4", "float64", "eps_dtype=float32"),
    ("onnxruntime", "BN-F4", "float64", "eps_dtype=float32"),
    ("onnx-reference", "LN-F4", "float64", "eps_dtype=float32"),
    ("onnx-reference", "BN-F4", "float64", "eps_dtype=float32"),
    ("onnx-reference", "LN-F1", "float16", "storage=native"),
    ("onnx-reference", "LN-F1", "bfloat16", "storage=native"),
    ("onnx-reference", "BN-F1", "bfloat16", "storage=native"),
    ("onnxruntime", "GN-F8", "float32", "variance_algorithm=one-pass"),
    ("onnx-reference", "GN-F1", "float16", "storage=H1"),
    ("onnx-reference", "RM-F1", "float16", "storage=native"),
    ("onnx-reference", "IN-F1", "bfloat16", "storage=native"),
]

in_both = pytest.mark.parametrize("name", TARGETS)


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The quick report on each target, in all four dtypes."""
    return {name: run(made(), dtypes=DTYPES) for name, made in TARGETS.items()}


@in_both
def test_it_conforms(reports: dict[str, Report], name: str) -> None:
    """No MUST is violated, nothing is left unjudged, and the exit status is 0."""
    report = reports[name]
    assert report.failures() == ()
    assert report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)


@in_both
def test_every_dtype_that_it_takes_is_judged(reports: dict[str, Report], name: str) -> None:
    """Each operator has passes in the dtypes that the target takes, and in no other."""
    judged = {(r.binding, r.dtype) for r in reports[name].results if r.verdict is Verdict.PASS}
    taken = {(binding.name, dtype) for binding in TARGETS[name]().bindings for dtype in TAKEN[name]}
    assert judged == taken - {("onnxruntime InstanceNormalization", "float64")}


def test_the_runtime_has_no_bfloat16(reports: dict[str, Report]) -> None:
    """Anything that ONNX Runtime does not take on the CPU is unsupported in every requirement, and says why."""
    found = [r for r in reports["onnxruntime"].results if r.dtype == "bfloat16"]
    assert {r.verdict for r in found} == {Verdict.UNSUPPORTED}
    assert all(r.reason for r in found)


@in_both
def test_every_gradient_is_unsupported(reports: dict[str, Report], name: str) -> None:
    """Neither target has gradients: each requirement on one is unsupported, none passes, none deviates."""
    gradients = [r for r in reports[name].results if r.requirement[2:4] == "-G"]
    assert gradients
    assert {r.verdict for r in gradients} == {Verdict.UNSUPPORTED}


@pytest.mark.parametrize(("name", "requirement", "dtype", "convention"), DECLARED)
def test_a_declared_convention_is_needed_and_suffices(
    reports: dict[str, Report], name: str, requirement: str, dtype: str, convention: str
) -> None:
    """Declared, the requirement deviates and names the convention; without that one it fails."""
    (found,) = (r for r in reports[name].results if (r.requirement, r.dtype) == (requirement, dtype))
    assert found.verdict is Verdict.DEVIATES
    assert f"{convention} (declared by the binding)" in found.reason
    assert _fails_without(name, found.binding, requirement, dtype, convention.partition("=")[0])


@in_both
def test_momentum_is_the_weight_of_the_old(reports: dict[str, Report], name: str) -> None:
    """With 1 - momentum the running statistics are right; without the declaration they are not."""
    for requirement in ("BN-S1", "BN-S2", "BN-S3"):
        (found,) = (r for r in reports[name].results if (r.requirement, r.dtype) == (requirement, "float32"))
        assert found.verdict is Verdict.PASS
        assert _fails_without(name, found.binding, requirement, "float32", "momentum")


def _fails_without(name: str, of: str, requirement: str, dtype: str, convention: str) -> bool:
    """Whether a binding violates a requirement where it does not declare a convention."""
    made = TARGETS[name]()
    (binding,) = (b for b in made.bindings if b.name == of)
    kept = {key: value for key, value in binding.conventions.items() if key != convention}
    stripped = dataclasses.replace(binding, conventions=kept, reasons={}, known_violations=())
    report = run(dataclasses.replace(made, bindings=(stripped,)), dtypes=(dtype,), requirements={requirement})
    return {r.requirement for r in report.failures()} == {requirement}


def test_what_the_reference_is_known_to_violate_deviates(reports: dict[str, Report]) -> None:
    """The dtype of the reference's running statistics is found by CM-D3, and reported with the reason."""
    found = [r for r in reports["onnx-reference"].results if r.requirement == "CM-D3" and "Batch" in r.binding]
    deviating = {r.dtype: r.reason for r in found if r.verdict is Verdict.DEVIATES}
    assert set(deviating) == {"float16", "bfloat16"}
    assert all("cast to the dtype of X" in reason for reason in deviating.values())


@in_both
def test_momentum_in_float64_deviates(reports: dict[str, Report], name: str) -> None:
    """The weights of the moving averages are float32 numbers: found in float64, and reported with the reason."""
    found = {r.requirement: r for r in reports[name].results if r.dtype == "float64"}
    for requirement in ("BN-S1", "BN-S2"):
        assert found[requirement].verdict is Verdict.DEVIATES
        assert "momentum is an attribute of type float" in found[requirement].reason
