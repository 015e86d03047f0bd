"""
MXNet's own layers and compositions of them, at quick: they conform under their declared conventions.

MXNet runs in its own interpreter, which NORMSPEC_MXNET_PYTHON names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import attrs
import pytest

import normspec
from normspec import Report, Verdict
from normspec.adapters.remote.launching import opened_target, start_host
from normspec.conformance.engine.engine import Run
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of
from normspec.spec.operators import OPERATORS

DTYPES = ("float16", "float32", "float64")

LAYER_NORMS = {"mxnet.gluon.nn.LayerNorm", "mxnet.nd.LayerNorm"}
BATCH_NORMS = {"mxnet.gluon.nn.BatchNorm", "mxnet.nd.BatchNorm"}
GROUP_NORM = {"mxnet.gluon.nn.GroupNorm(x) * gamma + beta"}

#: For a requirement and a dtype: the bindings that deviate from it, and the convention that they declare.
DECLARED = {
    ("LN-F1", "float64"): (LAYER_NORMS, "eps_dtype=float32"),
    ("LN-F1", "float16"): (LAYER_NORMS, "storage=native"),
    ("LN-G2", "float16"): (LAYER_NORMS, "storage=native"),
    ("BN-F1", "float16"): (BATCH_NORMS, "storage=native"),
    ("BN-G1", "float16"): (BATCH_NORMS, "storage=native"),
    ("GN-F1", "float64"): (GROUP_NORM, "eps_dtype=float32"),
    ("GN-F1", "float16"): (GROUP_NORM, "storage=native"),
}

#: The same for known violations of a binding, with words of the reason; quick runs fewer cases on the second binding.
KNOWN = {
    ("layer_norm", "CM-S2", "float32"): (LAYER_NORMS, "the backward pass of an empty batch raises"),
    ("batch_norm", "BN-S1", "float64"): ({"mxnet.gluon.nn.BatchNorm"}, "momentum is a parameter of type float"),
    ("batch_norm", "BN-S2", "float32"): (BATCH_NORMS, "recovered from the saved reciprocal root"),
    ("batch_norm", "BN-S4", "float32"): (BATCH_NORMS, "recovered from the saved reciprocal root"),
    ("group_norm", "CM-S2", "float32"): (GROUP_NORM, "a batch without samples raises"),
}


def on_every_case(operator: str, dtype: str, requirement: str, conventions: Mapping[str, str] | None = None) -> Report:
    """The report on one requirement, on all cases of quick instead of a few."""
    target = opened_target(start_host("mxnet", op=[operator], python=os.environ["NORMSPEC_MXNET_PYTHON"]))
    profile = attrs.evolve(profile_of("quick"), secondary_bindings=None)
    conventions, asked = dict(conventions or {}), frozenset({requirement})
    plan = Plan((replace(target, slow=False),), (dtype,), "cpu", conventions, profile, 0, requirements=asked)
    try:
        return Run(plan).report()
    finally:
        target.close()


@pytest.fixture(scope="module")
def report() -> Report:
    """All operators in all the dtypes that MXNet has."""
    return normspec.check("mxnet", python=os.environ["NORMSPEC_MXNET_PYTHON"], profile="quick", seed=0)


def test_mxnet_conforms(report: Report) -> None:
    """No MUST is violated, nothing is left unjudged, and the exit status is 0."""
    assert report.failures() == ()
    assert report.errors() == ()
    assert (report.conforms, report.exit_status) == (True, 0)


def test_every_operator_is_judged_in_every_dtype(report: Report) -> None:
    """All except rms_norm have passes in float16, float32 and float64; instance_norm takes only float32."""
    judged = {(r.op, r.dtype) for r in report.results if r.verdict is Verdict.PASS}
    others = set(OPERATORS) - {"rms_norm", "instance_norm"}
    assert judged == {(operator, dtype) for operator in others for dtype in DTYPES} | {("instance_norm", "float32")}


@pytest.mark.parametrize(("requirement", "dtype"), DECLARED)
def test_a_declared_convention_is_confirmed(report: Report, requirement: str, dtype: str) -> None:
    """Every binding that declares a convention deviates where it shows, and names the convention."""
    bindings, convention = DECLARED[requirement, dtype]
    found = [r for r in report.results if (r.requirement, r.dtype) == (requirement, dtype)]
    assert {r.binding for r in found} == bindings
    for one in found:
        assert one.verdict is Verdict.DEVIATES
        assert f"{convention} (declared by the binding)" in one.reason


@pytest.mark.parametrize(("operator", "requirement", "dtype"), KNOWN)
def test_a_known_violation_is_found(operator: str, requirement: str, dtype: str) -> None:
    """A binding's known violation occurs, and is reported with the reason."""
    bindings, words = KNOWN[operator, requirement, dtype]
    report = on_every_case(operator, dtype, requirement)
    found = [r for r in report.results if (r.requirement, r.dtype) == (requirement, dtype) and r.binding in bindings]
    assert {r.binding for r in found} == bindings
    for one in found:
        assert one.verdict is Verdict.DEVIATES
        assert words in one.reason


@pytest.mark.parametrize(
    ("operator", "dtype", "key", "other", "requirement"),
    [
        ("layer_norm", "float64", "eps_dtype", "exact", "LN-F4"),
        ("layer_norm", "float16", "storage", "H2", "LN-F1"),
        ("batch_norm", "float16", "storage", "H2", "BN-F1"),
        ("batch_norm", "float32", "momentum", "new", "BN-E5"),
    ],
)
def test_no_other_value_would_do(operator: str, dtype: str, key: str, other: str, requirement: str) -> None:
    """Under the next stronger class, or the other reading of momentum, a requirement fails in the Gluon layer."""
    report = on_every_case(operator, dtype, requirement, {key: other})
    (found,) = (r for r in report.results if r.requirement == requirement and ".gluon." in r.binding)
    assert found.verdict is Verdict.FAIL


def test_the_derivatives_that_mxnet_lacks_are_unsupported(report: Report) -> None:
    """Second order and forward mode are lacking, each with its reason; no gradient of the first order is."""
    lacking = {r.requirement: r.reason for r in report.results if r.verdict is Verdict.UNSUPPORTED}
    assert {"LN-G9", "LN-G10", "BN-G10", "BN-G11"} <= set(lacking)
    assert {"LN-G1", "LN-G2", "BN-G1", "RS-G1", "HW-G1", "MH-G1"}.isdisjoint(lacking)
