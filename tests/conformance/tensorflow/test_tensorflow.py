"""TensorFlow's operations and compositions of them, at quick: they conform with their declarations, not without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from normspec import Report, Verdict
from normspec.adapters.target import Target
from normspec.adapters.tensorflow import target

from ..runs import DTYPES, run

#: The operators that it has bindings of.
OPERATORS = tuple(dict.fromkeys(binding.operator for binding in target().bindings))

#: The formula of each operator, for the dtypes that are not run in full.
FORMULA = {"LN-F1", "BN-F1", "RS-F1", "PR-F1", "PO-F1", "HW-F1", "MH-F1"}

COMPOSED = "tf.nn.moments + tf.nn.batch_normalization"
FUSED = "tf.compat.v1.nn.fused_batch_norm"


def _of(operator: str, name: str = "") -> Target:
    whole = target()
    return replace(whole, bindings=tuple(b for b in whole.bindings if b.operator == operator and name in b.name))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The quick report on each operator in float32."""
    return {operator: run(_of(operator)) for operator in OPERATORS}


@pytest.mark.parametrize("operator", OPERATORS)
def test_tensorflow_conforms(reports: dict[str, Report], operator: str) -> None:
    """No MUST is violated, nothing is left unjudged or unsupported, and the exit status is 0."""
    report = reports[operator]
    assert report.failures() == ()
    assert report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)
    assert {r.requirement for r in report.results if r.verdict is Verdict.UNSUPPORTED} == set()
    assert {r.binding for r in report.results if r.verdict is Verdict.PASS} == {b.name for b in _of(operator).bindings}


@pytest.mark.parametrize("operator", OPERATORS)
def test_only_layouts_are_not_exercised(reports: dict[str, Report], operator: str) -> None:
    """A tensor has no strides, so no case can have another layout; everything else is judged."""
    idle = {r.requirement for r in reports[operator].results if r.verdict is Verdict.NOT_EXERCISED}
    assert idle <= {"CM-V1", "CM-V2", "CM-V3"}


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "float32"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_tensorflow_conforms_in_every_dtype(operator: str, dtype: str) -> None:
    """Formula and dtypes are right in float16, bfloat16 and float64 too; only the fused kernel lacks float64."""
    report = run(_of(operator), dtypes=(dtype,), requirements=FORMULA | {"CM-T3", "CM-D1", "CM-D2", "CM-D3"})
    assert report.failures() == ()
    assert report.errors() == ()
    lacking = {r.binding for r in report.results if r.verdict is Verdict.UNSUPPORTED}
    assert lacking == ({FUSED} if (operator, dtype) == ("batch_norm", "float64") else set())


#: For an operator, a binding, a requirement and a dtype: the convention without which it fails.
DECLARED: Mapping[tuple[str, str, str, str], str] = {
    ("layer_norm", COMPOSED, "LN-F1", "float16"): "storage=native",
    ("layer_norm", COMPOSED, "LN-G1", "bfloat16"): "storage=native",
    ("batch_norm", COMPOSED, "BN-F1", "bfloat16"): "storage=native",
    ("batch_norm", COMPOSED, "BN-G1", "float16"): "storage=native",
    ("batch_norm", FUSED, "BN-S2", "float32"): "running_variance=bessel",
    ("batch_norm", FUSED, "BN-S2", "float16"): "running_variance=bessel",
    ("pre_norm", "tf ", "PR-F1", "bfloat16"): "storage=native",
    ("post_norm", "tf ", "PO-F1", "bfloat16"): "storage=native",
    ("highway", "tf ", "HW-F1", "float16"): "storage=native",
    ("mhc", "tf ", "MH-F1", "bfloat16"): "storage=native",
}


@pytest.mark.parametrize(("operator", "name", "requirement", "dtype"), DECLARED)
def test_undeclared_it_fails(operator: str, name: str, requirement: str, dtype: str) -> None:
    """Stripped of that one declaration a binding violates the requirement; with it, it deviates."""
    convention = DECLARED[operator, name, requirement, dtype]
    whole = _of(operator, name)
    (binding,) = whole.bindings
    (found,) = run(whole, dtypes=(dtype,), requirements={requirement}).results
    assert found.verdict is Verdict.DEVIATES
    assert f"{convention} (declared by the binding)" in found.reason
    conventions = {k: v for k, v in binding.conventions.items() if f"{k}={v}" != convention}
    assert len(conventions) == len(binding.conventions) - 1
    bare = replace(whole, bindings=(replace(binding, conventions=conventions, reasons={}),))
    (found,) = run(bare, dtypes=(dtype,), requirements={requirement}).results
    assert found.verdict is Verdict.FAIL


#: For an operator, a binding and a dtype: a requirement that only a platform that flushes subnormal numbers fails.
MEASURED: Mapping[tuple[str, str, str], str] = {
    ("batch_norm", FUSED, "bfloat16"): "BN-G2",
    ("mhc", "tf ", "float32"): "MH-G6",
}


@pytest.mark.parametrize(("operator", "name", "dtype"), MEASURED)
def test_what_the_platform_flushes_is_measured(operator: str, name: str, dtype: str) -> None:
    """Undeclared it deviates, as measured; held to subnormal numbers that are kept, it fails."""
    requirements = {MEASURED[operator, name, dtype]}
    (found,) = run(_of(operator, name), dtypes=(dtype,), requirements=requirements).results
    assert found.verdict is Verdict.DEVIATES
    assert "subnormals=flushed (measured: " in found.reason
    kept = run(_of(operator, name), dtypes=(dtype,), requirements=requirements, conventions={"subnormals": "kept"})
    assert kept.results[0].verdict is Verdict.FAIL
