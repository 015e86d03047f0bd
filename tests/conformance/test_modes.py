"""batch_norm in one mode: what is checked there, what is found, and how a frozen layer is judged."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import normspec
from normspec import Verdict
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.reporting.conclusion import conclusion
from normspec.spec.errors import UnknownMode

from .runs import FAULT, VARIANT, function, others_at_night, result, run, specimen, verdicts

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

BATCH_NORM = VARIANT["bn-two-pass"].build()

#: Requirements about a training batch, which mean nothing in inference.
TRAINING = {c.requirement for c in checks_of("batch_norm") if c.modes == ("training",)}
INFERENCE = {c.requirement for c in checks_of("batch_norm") if c.modes == ("inference",)}


def frozen(x: Any, *arguments: Any, training: bool, **settings: Any) -> Any:
    """A sound batch_norm that has no training."""
    if training:
        raise NotImplementedError("frozen")
    return BATCH_NORM.call(x, *arguments, training=training, **settings)


def test_what_has_no_meaning_in_a_mode_is_not_asked() -> None:
    """The report of one mode has no result about the other, and every other result is a verdict."""
    for mode, absent in (("inference", TRAINING), ("training", INFERENCE)):
        report = run(specimen(VARIANT["bn-two-pass"]), mode=mode, dtypes=("float16",))
        assert {r.requirement for r in report.results}.isdisjoint(absent)
        assert {r.verdict for r in report.results} == {Verdict.PASS}
        assert {one.mode for one in report.taken} == {mode}
        assert conclusion(report)[0] == f"CONFORMS only in {mode}"
    assert {"BN-I1", "BN-G4"} <= INFERENCE
    assert {"BN-F1", "BN-F2", "BN-S1", "BN-G1", "BN-L8", "BN-E1"} <= TRAINING


def test_a_function_without_training_is_judged_in_inference() -> None:
    """A function that declines every training call is judged in inference unasked, and the verdict says so."""
    report = run(function("batch_norm", frozen, vjp=BATCH_NORM.vjp))
    assert (report.conforms, report.exit_status, report.share) == (True, 0, 1)
    assert conclusion(report)[0] == "CONFORMS only in inference"
    assert report.taken[0].mode_reason == "it declines every training call (NotImplementedError: frozen)"
    for requirement in ("BN-I1", "BN-I2", "BN-I3", "BN-I4", "BN-F3", "CM-T1", "CM-N1", "CM-S1", "BN-G4", "BN-G9"):
        assert result(report, requirement).verdict is Verdict.PASS
    assert {r.requirement for r in report.results}.isdisjoint(TRAINING)


def test_a_frozen_layer_that_raises_needs_the_mode() -> None:
    """Another exception in training is a violation there, and nothing under the mode of inference."""

    def raising(x: Any, *arguments: Any, training: bool, **settings: Any) -> Any:
        if training:
            raise ValueError("frozen")
        return BATCH_NORM.call(x, *arguments, training=training, **settings)

    target = function("batch_norm", raising, vjp=BATCH_NORM.vjp)
    assert result(run(target, requirements={"CM-T1"}), "CM-T1").verdict is Verdict.FAIL
    assert run(target, mode="inference").conforms


def test_a_frozen_layer_that_ignores_the_mode_is_judged_in_the_one_asked_for() -> None:
    """It gives the results of inference in training too, which no check of the other mode may look at."""

    def ignoring(x: Any, *arguments: Any, training: bool, **settings: Any) -> Any:
        return BATCH_NORM.call(x, *arguments, training=False, **settings)

    target = function("batch_norm", ignoring)
    assert run(target, mode="inference", forward_only=True).conforms
    assert not run(target, forward_only=True).conforms


@pytest.mark.parametrize(
    "name",
    [
        "bn-eps-missing-in-inference",
        "bn-inference-uses-batch-stats",
        "bn-running-var-as-deviation",
        "bn-inference-updates-stats",
        "bn-inference-saturates",
        "bn-inference-beta-ignored",
    ],
)
def test_faults_in_inference_are_killed_there(name: str) -> None:
    """Each fault of inference is found in that mode, by the requirement that forbids it."""
    report = run(specimen(FAULT[name]), mode="inference")
    assert result(report, FAULT[name].requirement).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    "name",
    [
        "bn-eps-on-std",
        "bn-eps-double",
        "bn-affine-order",
        "bn-affine-needs-both",
        "bn-negative-channel-axis-misread",
        "bn-abs-gamma",
    ],
)
def test_faults_of_both_modes_are_killed_in_inference(name: str) -> None:
    """Cases that isolate eps, the affine map, absent parameters or the axis in training do so in inference."""
    found = verdicts(run(specimen(FAULT[name]), mode="inference"))
    assert "fail" in (found[FAULT[name].requirement], found["BN-I1"])


def test_a_mode_is_nothing_to_another_operator() -> None:
    """layer_norm has one mode: it is judged on the same cases under either."""
    target = specimen(VARIANT["ln-two-pass"])
    assert verdicts(run(target, mode="inference")) == verdicts(run(target))


def test_an_unknown_mode_is_an_error() -> None:
    """Any other word is reported before anything runs."""
    with pytest.raises(UnknownMode, match="did you mean 'inference'"):
        normspec.check("numpy", mode="infrence")


def frozen_like(made: Any) -> Any:
    """The function as a target that declines training."""

    def call(x: Any, *arguments: Any, training: bool, **settings: Any) -> Any:
        if training:
            raise NotImplementedError("frozen")
        return made.call(x, *arguments, training=training, **settings)

    return function("batch_norm", call, vjp=made.vjp)


@pytest.mark.parametrize(
    ("name", "asked"),
    others_at_night(
        itertools.product(["bn-dgamma-mean", "bn-dbeta-mean", "bn-abs-gamma"], [True, False]),
        [("bn-dgamma-mean", False), ("bn-abs-gamma", True)],
    ),
)
def test_a_mistake_in_inference_is_named(name: str, asked: bool) -> None:
    """Its requirement meets training cases alone elsewhere; the mode may be asked for, or found out."""
    target = frozen_like(FAULT[name].build())
    report = run(target, mode="inference" if asked else "", requirements={FAULT[name].requirement}, explain=True)
    assert {one.mode for one in report.taken} == {"inference"}
    assert [cause.faults for cause in report.causes] == [(name,)]


def test_a_declaration_is_found_in_inference() -> None:
    """BN-L11 is violated, whose check takes no inference elsewhere: only the right declaration removes that."""
    target = frozen_like(VARIANT["bn-one-plus-gamma"].build())
    report = run(target, requirements={"BN-L11"}, explain=True)
    assert report.failures() and report.subjects[0]["passes_under"] == ("gain=one-plus-gamma",)
