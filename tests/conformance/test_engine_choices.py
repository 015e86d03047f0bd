"""What the engine tries, and what it says of what it did not try."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

import normspec
from normspec.conformance.checks import registry
from normspec.conformance.checks.registry import check
from normspec.conformance.engine import declaration_search, pace
from normspec.conformance.engine.dtypes import PlainestCalls
from normspec.conformance.engine.engine import Run
from normspec.conformance.engine.modes import modes_to_try
from normspec.conformance.requests.plan import Plan
from normspec.conformance.requests.profiles import profile_of

from .runs import VARIANT, function, result, run, specimen

BATCH_NORM = VARIANT["bn-two-pass"].build()


def plan_of(target: Any, dtypes: tuple[str, ...] | None = ("float32",), mode: str = "") -> Plan:
    """A plan of `quick` for one target."""
    return Plan((target,), dtypes, "cpu", {}, profile_of("quick"), 0, mode=mode)


def frozen(failure: type[Exception], seen: list[bool]) -> Any:
    """A batch_norm that raises in training, and notes the mode of each call."""

    def call(x: Any, *arguments: Any, training: bool, **settings: Any) -> Any:
        seen.append(training)
        if training:
            raise failure("frozen")
        return BATCH_NORM.call(x, *arguments, training=training, **settings)

    return function("batch_norm", call)


def test_the_pace_of_a_function_that_declines_training_is_measured_in_inference(monkeypatch):
    """Its training calls return at once, and say nothing about how long a call takes."""
    seen: list[bool] = []
    target = frozen(NotImplementedError, seen)
    now = iter(range(1000))
    monkeypatch.setattr(pace.time, "perf_counter", lambda: next(now))
    found = Run(plan_of(target))
    subject = found.subject(target, target.bindings[0], "float32")
    assert subject.slow and found.paces == {"own": "a call takes 1000 ms"}
    assert seen == [True] + [False] * pace.CALLS


def test_the_plainest_call_is_made_in_the_mode_asked_for():
    """A batch_norm that raises in training works in inference, where alone it is judged."""
    seen: list[bool] = []
    target = frozen(ValueError, seen)
    for mode, works in (("inference", True), ("training", False)):
        plainest = PlainestCalls(Run(plan_of(target, mode=mode)).subject)._plainest(
            target, target.bindings[0], "float32"
        )
        assert plainest.works is works


def test_a_slow_function_in_this_process_makes_few_extra_calls():
    """A check that makes calls of its own stops after four cases, as it does for a function in a worker."""
    target = specimen(VARIANT["ln-two-pass"])
    slow = Run(Plan((target,), ("float32",), "cpu", {}, profile_of("quick"), 0, slow=True)).report()
    assert result(slow, "LN-F7").cases == 4  # of eight that other checks need


def test_a_run_tells_how_long_it_took():
    """The seconds between its beginning and its end, whatever the clock showed before."""
    started = time.perf_counter()
    report = run(specimen(VARIANT["rs-plain"]), requirements={"RS-L4"})
    assert 0 < report.seconds <= time.perf_counter() - started


def test_what_a_failed_plain_call_leaves_untried_is_said():
    """The first case has rank 2, and the function takes images alone: no case was there for most checks."""

    def images(x: Any, *arguments: Any, **settings: Any) -> Any:
        if x.ndim != 4:
            raise ValueError("images only")
        return BATCH_NORM.call(x, *arguments, **settings)

    report = run(function("batch_norm", images))
    assert {one.reason for one in report.results if one.verdict == "not-exercised"} == {
        "its cases violate CM-T1, which it rests on"
    }


@pytest.mark.parametrize(
    ("asked", "foremost"),
    [(None, "float32"), (("float16", "float64"), "float16"), (("bfloat16", "float64"), "float64")],
)
def test_one_dtype_is_checked_most_thoroughly(asked, foremost):
    """float32, or the first that is asked for and that the target has: there large calls are repeated as small ones."""
    target = specimen(VARIANT["ln-two-pass"])
    target = replace(target, dtypes=("float16", "float32", "float64"))
    found = Run(Plan((target,), asked, "cpu", {}, profile_of("standard"), 0))
    repeats = {one: found.subject(target, target.bindings[0], one).large_repeats for one in target.dtypes}
    asked = asked or target.dtypes
    assert [one for one in target.dtypes if repeats[one] == 512 and one in asked] == [foremost]


@pytest.mark.parametrize(("name", "others"), [("numpy", 64), ("own", 512)])
def test_a_framework_repeats_calls_less_often_in_other_dtypes(name, others):
    """A race of its own layers shows in any dtype; a user's function may have one in a path for one dtype."""
    target = replace(specimen(VARIANT["ln-two-pass"]), name=name, dtypes=("float32", "float64"))
    found = Run(Plan((target,), None, "cpu", {}, profile_of("standard"), 0))
    repeats = {one: found.subject(target, target.bindings[0], one).repeats for one in target.dtypes}
    assert repeats == {"float32": 512, "float64": others}


def test_a_check_makes_extra_calls_on_few_cases_of_a_further_spelling():
    """On as many as each requirement is tried on at least; of a check that makes none, every case is judged."""
    first = specimen(VARIANT["ln-two-pass"])
    target = replace(first, name="numpy", bindings=(*first.bindings, replace(first.bindings[0], name="second")))
    report = Run(plan_of(target)).report()
    second = {one.requirement: one.cases for one in report.results if one.binding == "second"}
    assert second["CM-P4"] == 1 < second["LN-F1"]


@pytest.mark.parametrize(
    ("name", "dtypes", "whole"),
    [
        ("numpy", ("float16", "float32", "float64"), {"float32"}),
        ("numpy", ("float64", "float16"), {"float64"}),
        ("own", ("float16", "float32"), {"float16", "float32"}),
    ],
)
def test_quick_runs_all_cases_of_a_framework_in_one_dtype(name, dtypes, whole):
    """In float32, or the first asked for; in the others fewer, which judge each requirement. A function gets all."""
    target = replace(specimen(VARIANT["rs-in-place"]), name=name)
    report = Run(plan_of(target, dtypes)).report()
    cases = {one.dtype: one.cases for one in report.taken}
    assert {dtype for dtype in dtypes if cases[dtype] == max(cases.values())} == whole
    judged: dict[str, set[str]] = {dtype: set() for dtype in dtypes}
    for one in report.results:
        judged[one.dtype] |= {one.requirement} if one.cases else set()
    of_two_dtypes = {"CM-D1", "CM-D2"}  # float32 parameters beside 16-bit data
    assert all(judged[dtypes[0]] - judged[dtype] <= of_two_dtypes for dtype in dtypes)


def test_a_requirement_has_one_check(monkeypatch):
    """Bodies that one function makes have the same code; where they are registered tells them apart."""
    monkeypatch.setattr(registry, "CHECKS", {})
    monkeypatch.setattr(registry, "_MADE_AT", {})

    def made(name: str) -> Any:
        def body(subject: Any, case: Any) -> Any:
            return [name]

        return body

    for _ in range(2):  # as a file that is loaded twice
        check("LN-G1")(made("dx"))
    with pytest.raises(ValueError, match="LN-G1 has two checks"):
        check("LN-G1")(made("dbeta"))


def test_ctrl_c_ends_the_search_for_a_declaration(monkeypatch):
    """A candidate that was judged in half is no candidate that failed."""
    made = VARIANT["bn-old-momentum"].build()

    def pressed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(declaration_search._Trial, "_note", pressed)
    report = normspec.check(made.call, op="batch_norm", dtypes=["float32"], profile="quick", only="BN-S*", cache=False)
    assert report.failures()
    assert "interrupted before its violations were explained" in report.notes


def test_a_mode_is_nothing_to_an_operator_without_modes():
    """The plainest call of layer_norm and its checks are the same, whatever mode is asked for."""
    target = specimen(VARIANT["ln-two-pass"])
    subject = Run(plan_of(target, mode="inference")).subject(target, target.bindings[0], "float32")
    assert subject.mode == "" and modes_to_try(target.bindings[0], subject.mode) == (True,)
