"""Keras's layers and operations on the active backend, at quick: they conform as they declare, not undeclared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from normspec import Report, Verdict
from normspec.adapters.keras import target
from normspec.adapters.keras.bridge import BACKEND
from normspec.adapters.target import Target
from normspec.spec.operators import OPERATORS

from ..runs import run

#: On JAX, where each shape is compiled again: a few requirements of each operator that run on few cases.
SOME = {
    *("LN-F4", "LN-G5", "BN-F4", "BN-E1", "BN-G5", "RM-F4", "GN-F4", "GN-G5", "IN-F4", "IN-E1"),
    *("RS-F2", "PR-F5", "PO-F5", "HW-F3", "MH-F6"),
}
WHOLE = None if BACKEND != "jax" else frozenset(SOME)

#: Only PyTorch's tensors can be views.
VIEWS = ("CM-V1", "CM-V2", "CM-V3")

#: The formula of each operator, for the dtypes that are not run in full.
FORMULA = {*(f"{one.prefix}-F1" for one in OPERATORS.values()), "CM-T3", "CM-D1", "CM-D2", "CM-D3"}

LAYER_NORM, BATCH_NORM = "keras.layers.LayerNormalization", "keras.layers.BatchNormalization"
GROUP_NORM = "keras.layers.GroupNormalization"
OPERATION = "keras.ops.batch_normalization"


def _of(operator: str, name: str = "") -> Target:
    whole = target()
    return replace(whole, bindings=tuple(b for b in whole.bindings if b.operator == operator and name in b.name))


class Reports(dict[str, Report]):
    """The quick report on each operator in float32, each made when a test first asks for it: all take minutes."""

    def __missing__(self, operator: str) -> Report:
        self[operator] = run(_of(operator), requirements=WHOLE)
        return self[operator]


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The reports of this backend."""
    return Reports()


@pytest.mark.parametrize("operator", OPERATORS)
def test_keras_conforms(reports: dict[str, Report], operator: str) -> None:
    """No MUST is violated, nothing is left unjudged, every binding passes something, and the exit status is 0."""
    report = reports[operator]
    assert report.failures() == ()
    assert report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)
    assert {r.binding for r in report.results if r.verdict is Verdict.PASS} == {b.name for b in _of(operator).bindings}
    idle = {r.requirement for r in report.results if r.verdict is Verdict.NOT_EXERCISED}
    assert idle <= {"LN-R2", "BN-R2", "RM-R2", "GN-R2", "IN-R2", *(VIEWS if BACKEND != "torch" else ())}


@pytest.mark.parametrize("dtype", sorted({*target().dtypes} - {"float32"}))
@pytest.mark.parametrize("operator", OPERATORS)
def test_keras_conforms_in_every_dtype(operator: str, dtype: str) -> None:
    """Formula, shapes and dtypes are right in the other dtypes too."""
    if BACKEND == "jax" and dtype == "float16":
        pytest.skip("bfloat16 stands for the 16-bit dtypes where every shape is compiled anew")
    wanted = FORMULA if BACKEND != "jax" else SOME
    report = run(_of(operator), dtypes=(dtype,), requirements=wanted)
    assert report.failures() == ()
    assert report.errors() == ()
    assert {r.reason for r in report.results if r.verdict is Verdict.UNSUPPORTED} == set()


def _keeps_float64(operator: str) -> bool:
    """Whether Keras computes an operator in float64 when it gets float64."""
    return BACKEND == "tensorflow" or operator in ("residual", "highway", "mhc")


@pytest.mark.parametrize("operator", OPERATORS)
def test_float64_is_float32_where_it_is_declared_so(operator: str) -> None:
    """Off TensorFlow Keras takes and returns float64 and computes float32 where a mean is formed."""
    wanted = FORMULA if BACKEND == "torch" else {requirement for requirement in FORMULA if requirement.endswith("-F1")}
    declared = run(_of(operator), dtypes=("float64",), requirements=wanted)
    assert declared.failures() == declared.errors() == ()
    claimed = run(_of(operator), dtypes=("float64",), requirements=wanted, conventions={"float64": "float64"})
    assert bool(claimed.failures()) is not _keeps_float64(operator)


#: For an operator, a binding, a requirement and a dtype: the convention without which it fails.
DECLARED: Mapping[tuple[str, str, str, str], str] = {
    ("batch_norm", BATCH_NORM, "BN-S4", "float32"): "momentum=old",
    ("batch_norm", OPERATION, "BN-I1", "bfloat16"): "storage=native",
    ("post_norm", "keras ", "PO-F3", "bfloat16"): "storage=H1",
    ("highway", "keras ", "HW-F4", "bfloat16"): "storage=native",
    ("mhc", "keras ", "MH-L3", "bfloat16"): "storage=native",
}
ONE_PASS: Mapping[tuple[str, str, str, str], str] = {
    ("batch_norm", BATCH_NORM, "BN-F8", "float32"): "variance_algorithm=one-pass",
    ("batch_norm", OPERATION, "BN-F8", "float32"): "variance_algorithm=one-pass",
    ("group_norm", GROUP_NORM, "GN-F8", "float32"): "variance_algorithm=one-pass",
    ("instance_norm", GROUP_NORM, "IN-F8", "float32"): "variance_algorithm=one-pass",
}
ALL = {**DECLARED, **(ONE_PASS if BACKEND == "torch" else {})}


@pytest.mark.parametrize(("operator", "name", "requirement", "dtype"), ALL)
def test_undeclared_it_fails(operator: str, name: str, requirement: str, dtype: str) -> None:
    """Stripped of that one declaration a binding violates the requirement; with it, it deviates."""
    convention = ALL[operator, name, requirement, dtype]
    whole = replace(_of(operator, name), slow=False)  # a single requirement, run on all of its cases
    (binding,) = whole.bindings
    (found,) = run(whole, dtypes=(dtype,), requirements={requirement}).results
    key = convention.partition("=")[0]
    if key != "momentum":  # the argument is converted, so that nothing deviates
        assert found.verdict is Verdict.DEVIATES
        assert f"{convention} (declared by the binding)" in found.reason
    conventions = {k: v for k, v in binding.conventions.items() if k != key}
    assert binding.conventions[key] == convention.partition("=")[2]
    bare = replace(whole, bindings=(replace(binding, conventions=conventions, reasons={}),))
    (found,) = run(bare, dtypes=(dtype,), requirements={requirement}).results
    assert found.verdict is Verdict.FAIL


def test_what_the_backend_flushes_is_measured() -> None:
    """LayerNorm of subnormal bfloat16 numbers relies on what was measured of TensorFlow and of JAX, not of PyTorch."""
    whole = replace(_of("layer_norm", LAYER_NORM), slow=False)
    (found,) = run(whole, dtypes=("bfloat16",), requirements={"LN-F1"}).results
    assert found.verdict is (Verdict.PASS if BACKEND == "torch" else Verdict.DEVIATES)
    kept = run(whole, dtypes=("bfloat16",), requirements={"LN-F1"}, conventions={"subnormals": "kept"})
    assert kept.results[0].verdict is (Verdict.PASS if BACKEND == "torch" else Verdict.FAIL)
