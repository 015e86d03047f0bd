"""Gradients that are lacking, by design or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec import Report, Verdict
from normspec.conformance.checks.catalogue import checks_of

from .runs import NORMALISATIONS, VARIANT, function, result, run, specimen, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

SOUND = {"layer_norm": "ln-two-pass", "batch_norm": "bn-two-pass"}
LAYER_NORM = VARIANT["ln-two-pass"].build()

of_every_operator = pytest.mark.parametrize("operator", NORMALISATIONS)


def of_gradients(operator: str) -> set[str]:
    """The requirements that take gradients, and are about float32."""
    return {c.requirement for c in checks_of(operator) if c.gradient and "float32" in c.dtypes}


def only_gradients_lack(report: Report, operator: str, reason: str) -> None:
    """Assert that everything but what takes gradients passes, and that this is unsupported for the reason."""
    lacking = {r.requirement: r for r in report.results if r.verdict is Verdict.UNSUPPORTED}
    assert set(lacking) == of_gradients(operator)
    assert all(reason in r.reason for r in lacking.values())
    assert {r.verdict for r in report.results if r.requirement not in lacking} == {Verdict.PASS}
    assert (report.conforms, report.exit_status) == (True, 0)


@of_every_operator
def test_a_numpy_function_without_vjp(operator: str) -> None:
    """A function on NumPy arrays without a derivative next to it has unsupported gradients, and conforms."""
    report = run(function(operator, VARIANT[SOUND[operator]].build().call))
    only_gradients_lack(report, operator, "own_")


@of_every_operator
def test_forward_only(operator: str) -> None:
    """On the user's word gradients are left out, even where there are some."""
    report = run(specimen(VARIANT[SOUND[operator]]), forward_only=True)
    only_gradients_lack(report, operator, "declared forward-only")


def test_a_vjp_that_is_not_implemented() -> None:
    """A vjp that raises NotImplementedError says that there are no gradients, which is no violation."""

    def vjp(*arguments: Any, **settings: Any) -> Any:
        raise NotImplementedError("later")

    report = run(function("layer_norm", LAYER_NORM.call, vjp=vjp))
    assert {r.requirement: r.reason for r in report.results if r.verdict is Verdict.FAIL} == {}
    assert report.conforms


def test_a_vjp_that_raises() -> None:
    """A vjp that raises anything else violates CM-T3."""

    def vjp(*arguments: Any, **settings: Any) -> Any:
        raise ZeroDivisionError("by zero")

    report = run(function("layer_norm", LAYER_NORM.call, vjp=vjp))
    found = verdicts(report)
    assert (found["CM-T1"], found["CM-T3"], found["LN-F1"], found["LN-G1"]) == ("pass", "fail", "pass", "error")
    assert "ZeroDivisionError" in result(report, "CM-T3").reason


def test_a_gradient_that_is_none() -> None:
    """A parameter that no gradient reaches violates CM-T3, which names it; the gradients that there are are judged."""

    def vjp(*arguments: Any, **settings: Any) -> Any:
        dx, _, dbeta = LAYER_NORM.vjp(*arguments, **settings)
        return dx, None, dbeta

    target = function("layer_norm", LAYER_NORM.call, vjp=vjp)
    report = run(target, requirements={"CM-T3", "LN-G1", "LN-G2", "LN-G3", "LN-G4", "LN-G5"})
    found = result(report, "CM-T3")
    assert "gamma" in found.reason and "forward-only" not in found.reason
    assert verdicts(report) == {
        "CM-T3": "fail", "LN-G1": "pass", "LN-G2": "error", "LN-G3": "pass", "LN-G4": "pass", "LN-G5": "pass",
    }  # fmt: skip
    assert "no gradient reaches gamma" in result(report, "LN-G2").reason


@pytest.mark.parametrize("by", [1, 2])
def test_a_wrong_gradient_beside_one_that_is_missing(by: int) -> None:
    """A gradient that is wrong is found although another is missing."""

    def vjp(*arguments: Any, **settings: Any) -> Any:
        dx, _, dbeta = LAYER_NORM.vjp(*arguments, **settings)
        return by * dx, None, dbeta

    found = verdicts(run(function("layer_norm", LAYER_NORM.call, vjp=vjp), requirements={"LN-G1"}))
    assert found == {"LN-G1": "pass" if by == 1 else "fail"}


def test_gradients_that_are_all_none() -> None:
    """Where no gradient comes at all, CM-T3 fails and says how to declare that this is meant."""
    target = function("layer_norm", LAYER_NORM.call, vjp=lambda *_, **__: (None, None, None))
    found = result(run(target, requirements={"CM-T3"}), "CM-T3")
    assert found.verdict is Verdict.FAIL
    assert "--forward-only" in found.reason


@pytest.mark.parametrize("change", [lambda dx: dx.T.copy(), lambda dx: dx.astype(np.float16)])
def test_a_gradient_of_another_shape_or_dtype(change: Any) -> None:
    """A gradient has the shape and the dtype of its input: CM-T3."""

    def vjp(*arguments: Any, **settings: Any) -> Any:
        dx, dgamma, dbeta = LAYER_NORM.vjp(*arguments, **settings)
        return change(dx), dgamma, dbeta

    report = run(function("layer_norm", LAYER_NORM.call, vjp=vjp), requirements={"CM-T3"})
    assert verdicts(report) == {"CM-T3": "fail"}


@pytest.mark.parametrize(
    ("stage", "requirement", "words"),
    [
        ("jvp", "LN-G10", "the tangent of y has shape (1, 3, 4) in place of (3, 4)"),
        ("vjp_vjp", "LN-G9", "the second-order gradient of x has shape (1, 3, 4) in place of (3, 4)"),
        ("jvp_vjp", "LN-G12", "the derivative of a derivative in x has shape (1, 3, 4) in place of (3, 4)"),
    ],
)
def test_a_derivative_of_another_shape_is_wrong_not_lacking(stage: str, requirement: str, words: str) -> None:
    """A target that lacks a derivative raises."""

    def misshapen(*arguments: Any, **settings: Any) -> Any:
        found = getattr(LAYER_NORM, stage)(*arguments, **settings)
        return (found[0][None], *found[1:]) if isinstance(found, tuple) else found[None]

    report = run(function("layer_norm", LAYER_NORM.call, vjp=LAYER_NORM.vjp, **{stage: misshapen}))
    found = result(report, requirement)
    assert found.verdict is Verdict.FAIL and found.counterexample is not None
    assert found.counterexample.why == words
