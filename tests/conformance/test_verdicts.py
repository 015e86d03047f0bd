"""Functions that misbehave violate the requirement concerned, and no other."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec import Report, Verdict
from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.spec import Level, requirement

from .runs import (
    DTYPES,
    FAULT,
    NORMALISATIONS,
    VARIANT,
    others_at_night,
    result,
    run,
    specimen,
    variant_function,
    verdicts,
)

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

SOUND = {"layer_norm": "ln-two-pass", "batch_norm": "bn-two-pass"}

of_every_operator = pytest.mark.parametrize("operator", NORMALISATIONS)


def misbehaving(operator: str, change: Callable[[np.ndarray], Any]) -> Any:
    """A function with a changed y and right gradients."""

    def changed(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        returned = call(*arguments, **settings)
        return (change(returned[0]), *returned[1:]) if isinstance(returned, tuple) else change(returned)

    return variant_function(SOUND[operator], changed)


def violated(report: Report) -> set[str]:
    """The requirements that are violated."""
    return {r.requirement for r in report.results if r.verdict.is_violation}


def blames_the_call_alone(report: Report, requirement: str) -> None:
    """Assert that one requirement fails, that all else is an error or was not run, and the exit status is 1."""
    assert violated(report) == {requirement}
    others = Counter(r.verdict for r in report.results if r.requirement != requirement)
    assert set(others) <= {Verdict.ERROR, Verdict.NOT_EXERCISED}
    assert others[Verdict.ERROR] > others[Verdict.NOT_EXERCISED]
    assert (report.conforms, report.exit_status) == (False, 1)


@pytest.mark.parametrize("level", list(Level))
def test_the_level_decides_what_a_violation_is(level: Level) -> None:
    """A violated MUST is a fail and a violated SHOULD is advice: in the result, and in the JSON of it."""
    fault = next(one for one in FAULT.values() if requirement(one.requirement).level is level)
    report = run(specimen(fault), requirements={fault.requirement})
    (found,) = report.results
    assert found.verdict is (Verdict.FAIL if level is Level.MUST else Verdict.ADVICE)
    assert json.loads(report.to_json())["results"][0]["verdict"] == found.verdict.value


@of_every_operator
def test_a_function_that_always_raises(operator: str) -> None:
    """It violates CM-T1, with the exception's first line; nothing else can be judged."""

    def fail(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        raise RuntimeError("out of order\nand more")

    report = run(variant_function(SOUND[operator], fail))
    blames_the_call_alone(report, "CM-T1")
    assert result(report, "CM-T1").reason == "raised RuntimeError: out of order"


@of_every_operator
def test_a_function_that_raises_in_every_dtype(operator: str) -> None:
    """No dtype counts as unsupported where none works: CM-T1 fails in each."""

    def fail(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        raise TypeError("no")

    report = run(variant_function(SOUND[operator], fail), dtypes=DTYPES)
    assert {r.dtype for r in report.failures()} == set(DTYPES)
    assert report.exit_status == 1


def test_a_function_that_raises_for_large_data() -> None:
    """It violates what is promised of such data, where the plain call itself has it; there is nothing to compare."""

    def limited(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if np.abs(x).max() > 2.0**45:
            raise OverflowError("too large")
        return call(x, *arguments, **settings)

    report = run(variant_function("ln-two-pass", limited), requirements={"LN-R1", "LN-R2"})
    assert verdicts(report) == {"LN-R1": "advice", "LN-R2": "advice"}
    assert result(report, "LN-R2").reason == "raised OverflowError: too large"


@of_every_operator
def test_a_function_that_returns_none(operator: str) -> None:
    """It violates CM-T1: a call returns tensors."""
    blames_the_call_alone(run(variant_function(SOUND[operator], lambda *_, **__: None)), "CM-T1")


@of_every_operator
def test_a_function_that_returns_a_list(operator: str) -> None:
    """It violates CM-T1: a list of numbers is no tensor."""
    blames_the_call_alone(run(misbehaving(operator, lambda y: y.tolist())), "CM-T1")


def test_a_batch_norm_that_returns_y_alone() -> None:
    """It violates CM-T1: the new running statistics are among the promised results."""
    alone = variant_function("bn-two-pass", lambda call, *arguments, **settings: call(*arguments, **settings)[0])
    blames_the_call_alone(run(alone), "CM-T1")


@of_every_operator
def test_a_function_that_returns_another_shape(operator: str) -> None:
    """It violates CM-T2 and keeps CM-T1: something was returned."""
    report = run(misbehaving(operator, lambda y: y.reshape(-1)), requirements={"CM-T1", "CM-T2"})
    assert verdicts(report) == {"CM-T1": "pass", "CM-T2": "fail"}
    assert "in place of" in result(report, "CM-T2").reason


@of_every_operator
@pytest.mark.parametrize("dtype", others_at_night([np.float16, np.float64, np.int32, np.complex64], [np.complex64]))
def test_a_function_that_returns_another_dtype(operator: str, dtype: type) -> None:
    """It violates CM-T2, whether normspec knows the dtype or not."""
    report = run(misbehaving(operator, lambda y: y.astype(dtype)))
    assert verdicts(report)["CM-T2"] == "fail"
    assert np.dtype(dtype).name in result(report, "CM-T2").reason
    assert report.exit_status == 1


@of_every_operator
@pytest.mark.parametrize(
    ("widens", "where"),
    [(("inference", False), "in inference mode"), (("training", True), "where gradients are tracked")],
    ids=["inference", "tracked"],
)
def test_a_function_that_returns_another_dtype_in_one_place(operator: str, widens: Any, where: str) -> None:
    """It violates CM-T2, though the y of a training call without gradients has the dtype of x."""
    made, now = VARIANT[SOUND[operator]].build(), [("training", False)]

    def call(*arguments: Any, **settings: Any) -> Any:
        found = made.call(*arguments, **settings)
        y, rest = (found[0], found[1:]) if isinstance(found, tuple) else (found, ())
        y = y.astype(np.float64) if now[0] == widens else y
        return (y, *rest) if rest else y

    def prepare(*, mode: str, wrt: tuple[str, ...]) -> None:
        now[0] = mode, mode == "training" and bool(wrt)

    binding = Binding(operator, "own", call, {"vjp": made.vjp}, prepare=prepare)
    report = run(Target("own", "numpy", np.__version__, BRIDGE, (binding,)), requirements={"CM-T2"})
    assert verdicts(report) == {"CM-T2": "fail"}
    assert result(report, "CM-T2").reason == f"y has dtype float64 in place of float32 {where}"


@of_every_operator
def test_a_function_that_returns_nan_everywhere(operator: str) -> None:
    """It violates the formula, and nothing that relates NaN to NaN counts as a pass."""
    report = run(misbehaving(operator, lambda y: y * np.nan))
    found = verdicts(report)
    formula, law = ("LN-F1", "LN-L1") if operator == "layer_norm" else ("BN-F1", "BN-L1")
    assert (found["CM-T1"], found[formula], found[law]) == ("pass", "fail", "not-exercised")
    assert result(report, formula).ratio == np.inf
    assert report.exit_status == 1


def _first_row(x: np.ndarray, *, alone: bool) -> np.ndarray:
    """A mask of the values at the first place of the first axis; of none if it is the only one and not to count."""
    mask = np.zeros(x.shape, bool)
    if x.ndim > 1 and (alone or x.shape[0] > 1):
        mask[:1] = True
    return mask


@pytest.mark.parametrize(
    ("variant", "law", "alone"),
    [("ln-two-pass", "LN-L7", False), ("hw-plain", "HW-L3", True), ("rs-plain", "RS-L3", True)],
)
def test_a_nan_fulfils_no_relation(variant: str, law: str, alone: bool) -> None:
    """A group is not the same alone where it is NaN in a batch; NaN lies between no two numbers, and is no sum."""

    def spoil(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        y = call(x, *arguments, **settings)
        return np.where(_first_row(x, alone=alone), y.dtype.type(np.nan), y)

    assert verdicts(run(variant_function(variant, spoil), requirements={law})) == {law: "fail"}


@of_every_operator
def test_a_function_that_raises_in_one_dtype_alone(operator: str) -> None:
    """A dtype that it refuses is unsupported, with the reason; it conforms in the others."""

    def refuse(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if x.dtype == np.float16:
            raise TypeError("float16 is not for me")
        return call(x, *arguments, **settings)

    report = run(variant_function(SOUND[operator], refuse), dtypes=("float16", "float32"))
    of_float16 = [r for r in report.results if r.dtype == "float16"]
    assert of_float16 and {r.verdict for r in of_float16} == {Verdict.UNSUPPORTED}
    assert all("float16 is not for me" in r.reason for r in of_float16)
    assert report.conforms


@of_every_operator
def test_a_dtype_alone_that_it_refuses_is_not_checked(operator: str) -> None:
    """If it refuses the only dtype requested, and another works, nothing was checked: exit status 2."""

    def refuse(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if x.dtype == np.float16:
            raise TypeError("float16 is not for me")
        return call(x, *arguments, **settings)

    report = run(variant_function(SOUND[operator], refuse), dtypes=("float16",))
    assert (report.conforms, report.exit_status) == (False, 2)


def test_a_target_that_takes_none_of_the_cases() -> None:
    """A target that declines every call passes nowhere: all is unsupported, and exit status 2 says so."""
    target = specimen(VARIANT["bn-two-pass"])
    refusing = dataclasses.replace(target.bindings[0], accepts=lambda shape, settings: "it takes nothing")
    report = run(dataclasses.replace(target, bindings=(refusing,)))
    assert report.results
    assert {(r.verdict, r.reason) for r in report.results} == {(Verdict.UNSUPPORTED, "it takes nothing")}
    assert report.share == 0
    assert (report.conforms, report.exit_status) == (False, 2)


def test_a_layer_norm_that_takes_none_of_the_cases() -> None:
    """A binding is never called with what it does not accept, not even for its derivatives."""
    target = specimen(VARIANT["ln-two-pass"])
    refusing = dataclasses.replace(target.bindings[0], accepts=lambda shape, settings: "it takes nothing")
    report = run(dataclasses.replace(target, bindings=(refusing,)))
    assert {r.verdict for r in report.results} == {Verdict.UNSUPPORTED}
    assert (report.conforms, report.exit_status) == (False, 2)


@of_every_operator
def test_a_function_that_is_right_conforms(operator: str) -> None:
    """The harness of these tests accuses no function that is left as it is."""
    assert run(misbehaving(operator, lambda y: y)).conforms
