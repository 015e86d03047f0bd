"""A report as text, in an assertion, and as an exception."""

from __future__ import annotations

import subprocess
import sys

import pytest

import normspec
from normspec import NotConforming, Report
from normspec.conformance.faults import FAULTS
from normspec.conformance.reporting.layout import console_on
from normspec.conformance.reporting.render import print_report

from .runs import VARIANT, run, specimen

#: A user's test.
TEST = """
import normspec
from normspec import Verdict
from normspec.conformance.judging.verdicts import Result

FAILING = Result("mine.py:f", "mine.py:f", "layer_norm", "LN-F3", "MUST", "float32", "cpu", "eager", Verdict.FAIL)
REPORT = normspec.Report((FAILING,), profile="quick", seed=0)


def test_asserted():
    assert REPORT.conforms, REPORT


def test_raised():
    REPORT.raise_if_failed()
"""


@pytest.fixture(scope="module")
def failing() -> Report:
    """The report on a function with eps outside the root, with its cases."""
    (fault,) = (one for one in FAULTS if one.name == "ln-eps-on-std")
    return run(specimen(fault), requirements=("LN-F1", "LN-F3", "LN-L1"), explain=True)


def test_the_text_of_a_report_is_what_a_terminal_shows(failing, capsys):
    """`print(report)` writes what `normspec check` prints, without colour."""
    print(failing)
    text = capsys.readouterr().out
    print_report(failing, console_on(sys.stdout))
    assert text.strip() == capsys.readouterr().out.strip()
    assert "✗ LN-F3  eps inside the root" in text
    assert "\x1b" not in text
    assert text.rstrip().splitlines()[-1].startswith("DOES NOT CONFORM: ")


def test_a_report_can_be_printed_where_the_output_has_no_signs(failing, monkeypatch):
    """An ASCII standard output gets ASCII signs, and no UnicodeEncodeError."""

    class Ascii:
        encoding = "ascii"

    monkeypatch.setattr(sys, "stdout", Ascii())
    text = str(failing)
    monkeypatch.undo()
    assert "X LN-F3" in text
    assert text.isascii()


def test_a_report_is_shown_in_one_short_line(failing):
    """Where a value is shown, in a session or by pytest, a report is its last word; pytest cuts at 240 characters."""
    assert repr(failing).startswith("<Report: DOES NOT CONFORM: ")
    assert "\n" not in repr(failing)
    long = Report(failing.results * 40, profile="quick", seed=0, only=("LN-F3",) * 200)
    assert len(repr(long)) < 240


def test_what_does_not_conform_raises_an_error_that_says_what_failed(failing):
    """`raise_if_failed` says in a few lines which requirements failed, and the received and expected values."""
    with pytest.raises(NotConforming, match="DOES NOT CONFORM") as raised:
        failing.raise_if_failed()
    assert isinstance(raised.value, AssertionError)
    lines = str(raised.value).splitlines()
    assert len(lines) <= 6
    assert any("LN-F3 eps inside the root (float32): " in line and "should be" in line for line in lines)


def test_what_conforms_raises_nothing():
    """A sound function goes through."""
    run(specimen(VARIANT["ln-two-pass"]), requirements=("LN-F3",)).raise_if_failed()


def test_what_was_not_checked_raises_too():
    """A run that judged nothing does not pass, and a run that judged only in part does not either."""
    nothing = Report((), profile="quick", seed=0)
    with pytest.raises(NotConforming, match="NOTHING WAS CHECKED"):
        nothing.raise_if_failed()
    with pytest.raises(NotConforming, match="PARTIAL"):
        Report((), profile="quick", seed=0, partial=True).raise_if_failed()


def test_an_assertion_reads_well_in_pytest(tmp_path):
    """pytest shows the violations under the line of the test, and no line of ours."""
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    asserted, raised = done.stdout.split("test_raised", 1)
    assert "AssertionError: <Report: DOES NOT CONFORM: 1 violated: LN-F3.>" in asserted
    assert "NotConforming: DOES NOT CONFORM: 1 violated: LN-F3." in raised
    shown = done.stdout.replace(normspec.__path__[0], "").split("short test summary")[0]
    assert "conformance/results/report.py" not in shown
