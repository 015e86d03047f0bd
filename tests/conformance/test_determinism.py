"""The same seed gives the same report; an interrupted run reports its results so far."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from normspec import Report, Verdict
from normspec.conformance.cases.case import build
from normspec.conformance.cases.description import Description
from normspec.conformance.checks.mhc import shifted_logits
from normspec.conformance.engine.progress import Progress

from .runs import FAULT, NORMALISATIONS, VARIANT, others_at_night, run, specimen, subject_of, variant_function

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

SOUND = {"layer_norm": "ln-two-pass", "batch_norm": "bn-two-pass"}


def told(report: Report) -> dict[str, Any]:
    """Everything in a report except the time taken."""
    content = json.loads(report.to_json())
    content.pop("seconds", None)
    assert content["results"]
    return content


@pytest.mark.parametrize(
    "name", others_at_night(("ln-eps-on-std", "bn-momentum-convention", "bn-nan-skipped"), ["ln-eps-on-std"])
)
def test_the_same_seed_gives_the_same_report(name: str) -> None:
    """Verdicts, ratios, counterexamples and conventions are equal when a run is repeated."""
    first, second = (run(specimen(FAULT[name]), seed=4, explain=True) for _ in range(2))
    assert told(first) == told(second)
    assert any(r.counterexample is not None for r in first.results)


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_the_same_seed_gives_the_same_generated_cases(operator: str) -> None:
    """A run over generated cases is repeated to the last ratio."""
    requirements = {"LN-F1", "LN-G1", "BN-F1", "BN-G1"}
    first, second = (
        run(specimen(VARIANT[SOUND[operator]]), profile="standard", seed=9, requirements=requirements) for _ in range(2)
    )
    assert told(first) == told(second)


@pytest.mark.nightly
def test_another_seed_gives_other_numbers() -> None:
    """Two seeds give the same verdicts on a sound function, from other cases."""
    first, second = (run(specimen(VARIANT["ln-two-pass"]), seed=seed) for seed in (1, 2))
    assert [r.verdict for r in first.results] == [r.verdict for r in second.results]
    assert [r.ratio for r in first.results] != [r.ratio for r in second.results]


def test_gradients_are_judged_in_the_order_of_the_inputs() -> None:
    """With twelve branches and their logits, MH-L1 judges one gradient after the other, not in the order of a set."""
    groups = (("normal", 0), ("integers", 1))
    case = build(Description("mhc", 5, groups, recipe="leaf", count=12, requirements=frozenset({"MH-L1"})), "float32")
    subject = subject_of("mh-plain")
    judged = [one.output for one in shifted_logits(subject, case) if one.note == "every logit plus 8"]
    assert judged == ["y", *subject.observe(case).gradients]
    assert len(judged) == 15


def interrupting(operator: str, when: Callable[[int], bool]) -> Any:
    """A sound function during whose calls the user interrupts; the number of calls so far decides when."""
    calls = 0

    def change(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        nonlocal calls
        calls += 1
        if when(calls):
            raise KeyboardInterrupt
        return call(*arguments, **settings)

    return variant_function(SOUND[operator], change)


@pytest.mark.parametrize("operator", NORMALISATIONS)
def test_an_interrupted_run_is_partial(operator: str) -> None:
    """After Ctrl-C during a call, the results so far are reported, and exit status 3 says that they are partial."""
    report = run(interrupting(operator, lambda calls: calls == 400))
    assert (report.partial, report.conforms, report.exit_status) == (True, False, 3)
    assert len(report.results) > 5
    assert {r.verdict for r in report.results} <= {Verdict.PASS, Verdict.NOT_EXERCISED}
    assert all(r.cases > 0 for r in report.results if r.verdict is Verdict.PASS)
    assert len({(r.requirement, r.dtype) for r in report.results}) == len(report.results)


def test_an_interruption_keeps_the_dtypes_that_were_done() -> None:
    """Results of a dtype that was finished before Ctrl-C are complete in the report."""
    plain = run(specimen(VARIANT["ln-two-pass"]))

    def change(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        if x.dtype == np.float64 and x.shape[-1] == 17:  # in the middle of the second dtype
            raise KeyboardInterrupt
        return call(x, *arguments, **settings)

    report = run(variant_function("ln-two-pass", change), dtypes=("float32", "float64"))
    assert report.exit_status == 3
    assert [r for r in report.results if r.dtype == "float32"] == [
        attrs.evolve(r, target="own", binding="own") for r in plain.results
    ]
    assert any(r.dtype == "float64" for r in report.results)


def test_an_interruption_at_once_reports_nothing() -> None:
    """On Ctrl-C in the first call there is an empty, partial report, and no traceback."""
    report = run(interrupting("layer_norm", lambda calls: True))
    assert (report.results, report.partial, report.exit_status) == ((), True, 3)


def test_an_interruption_while_shrinking_keeps_the_violation() -> None:
    """On Ctrl-C while a counterexample is made smaller, the violation is reported as it was found."""
    made, shrinking = FAULT["ln-eps-on-std"].build(), False

    def listen(progress: Progress) -> None:
        nonlocal shrinking
        shrinking = shrinking or "shrinking" in progress.text

    def change(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        if shrinking:
            raise KeyboardInterrupt
        return made.call(*arguments, **settings)

    report = run(variant_function("ln-two-pass", change), explain=True, listener=listen)
    assert shrinking
    assert report.exit_status == 3
    assert "LN-F3" in {r.requirement for r in report.failures()}
    assert any(r.verdict is Verdict.PASS for r in report.results)


@pytest.mark.nightly
def test_a_listener_hears_of_every_step() -> None:
    """Progress only grows, to a total that is known from the first event on, and counts the violations."""
    heard: list[Progress] = []
    report = run(specimen(FAULT["ln-eps-on-std"]), dtypes=("float32", "float64"), listener=heard.append)
    done = [event.done for event in heard]
    assert done == sorted(done)
    assert {event.total for event in heard} == {2}
    assert heard[-1].done <= 2
    assert 1 < done[len(done) * 3 // 4] < 2
    assert heard[-1].violations == len(report.failures()) > 0
    assert heard[0].text == "ln-eps-on-std layer_norm float32"


def test_advice_is_counted_as_no_violation() -> None:
    """A function that conforms has none, though it is advised something."""
    heard: list[Progress] = []
    report = run(specimen(FAULT["ln-eps-unchecked"]), listener=heard.append)
    assert report.conforms
    assert report.advice()
    assert {event.violations for event in heard} == {0}
