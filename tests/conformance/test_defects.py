"""An exception in our own code is an error that says so; the rest of the run goes on."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import attrs
import pytest
from rich.console import Console

from normspec import Report, Verdict
from normspec.conformance.checks.catalogue import checks_of
from normspec.conformance.checks.registry import CHECKS
from normspec.conformance.engine import engine, subject_run
from normspec.conformance.reporting.render import print_report
from normspec.conformance.requests.profiles import Profile
from normspec.conformance.requests.request import Request
from normspec.conformance.running.answering_process import AnsweringProcess, ProcessEnded
from normspec.conformance.running.processes import Processes

from .runs import FAULT, VARIANT, run, specimen


def broken(*arguments: Any, **keywords: Any) -> Any:
    """Code of ours with a mistake in it."""
    raise ZeroDivisionError("a mistake of ours")


@pytest.fixture
def broken_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of LN-G4 raises."""
    checks_of("layer_norm")
    monkeypatch.setitem(CHECKS, "LN-G4", attrs.evolve(CHECKS["LN-G4"], body=broken))


def shown(report: Report) -> str:
    """The report as a terminal shows it."""
    text = StringIO()
    print_report(report, Console(file=text, width=100))
    return " ".join(text.getvalue().split())


@pytest.mark.usefixtures("broken_check")
def test_an_exception_in_a_check_is_a_defect_of_ours() -> None:
    """The requirement is an error with our name on it, the traceback is in the JSON, and everything else is judged."""
    report = run(specimen(VARIANT["ln-two-pass"]), defects=True)
    verdicts = {result.requirement: result.verdict for result in report.results}
    assert [name for name, verdict in verdicts.items() if verdict is Verdict.ERROR] == ["LN-G4"]
    assert verdicts["LN-F1"] is verdicts["LN-G5"] is Verdict.PASS
    assert (report.conforms, report.exit_status) == (False, 3)
    (told,) = [one for one in json.loads(report.to_json())["results"] if one["requirement"] == "LN-G4"]
    assert told["reason"] == "a defect of normspec: ZeroDivisionError: a mistake of ours"
    assert "in broken" in told["traceback"]
    assert "a defect of normspec left something unjudged" in shown(report)


@pytest.mark.usefixtures("broken_check")
def test_a_defect_hides_no_violation() -> None:
    """A faulty function fails as it would without the defect, with exit status 1."""
    report = run(specimen(FAULT["ln-eps-on-std"]), defects=True)
    assert "LN-F3" in {result.requirement for result in report.failures()}
    assert report.exit_status == 1


@pytest.mark.parametrize("part", ["fitted", "select_cases"])
def test_an_exception_between_the_checks_is_a_defect_too(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where choosing the cases raises, every requirement of that subject says so."""
    monkeypatch.setattr(subject_run, part, broken)
    monkeypatch.setattr(Profile, "minimum", lambda *arguments, **keywords: 1)
    report = run(specimen(VARIANT["ln-two-pass"]), defects=True)
    assert {result.verdict for result in report.results} == {Verdict.ERROR}
    assert all("a defect of normspec" in result.reason for result in report.results)
    assert report.exit_status == 3


def test_an_exception_while_shrinking_leaves_the_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A violation that could not be made smaller is reported as it was found, with our traceback."""
    monkeypatch.setattr(engine.Shrinker, "shrink", broken)
    report = run(specimen(FAULT["ln-eps-on-std"]), explain=True, defects=True)
    failures = report.failures()
    assert all(result.counterexample is not None and "in broken" in result.traceback for result in failures)
    assert report.exit_status == 1


@pytest.mark.parametrize(("raised", "told"), [(ProcessEnded, False), (ZeroDivisionError, True)])
def test_another_process_hides_no_defect(raised: type[Exception], told: bool) -> None:
    """The worker's death is nothing to report; any other exception with it is a defect, and no unit is lost."""

    class Broken(AnsweringProcess):
        def ask(self, question: str) -> Any:
            raise raised("beside another process")

    request = Request(
        targets=("numpy",), op=("residual",), framework=None, dtypes=("float32", "float64"), device="cpu",
        conventions={}, profile="quick", seed=0,
    )  # fmt: skip
    with Processes(request, 1) as several:
        several._others = [Broken(None)]  # type: ignore[arg-type]
        found = dict(several.judged(several.units([0])))
        several._others = []
        assert found.keys() == set(several.units([0]))
    assert all(report.results and not report.partial for report in found.values())
    defects = [defect for report in found.values() for defect in report.defects]
    assert ["beside another process" in defect for defect in defects] == [True] * told
