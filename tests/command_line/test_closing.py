"""The end of a report: counts, conventions, reasons and the last word."""

from __future__ import annotations

import json

from normspec import Verdict
from normspec.conformance.reporting.versions import with_targets


def test_the_last_line_says_conforms(a_result, a_report, printed):
    """A report without a violation ends with that word."""
    assert printed(a_report(a_result())).rstrip().splitlines()[-1] == "CONFORMS"


def test_the_last_line_names_what_is_violated(a_result, a_report, printed):
    """A report with violations ends with how many requirements they are, and which."""
    text = printed(a_report(a_result(verdict=Verdict.FAIL), a_result(verdict=Verdict.FAIL, dtype="float64")))
    assert text.rstrip().splitlines()[-1] == "DOES NOT CONFORM: 1 violated: LN-F1."


def test_an_interrupted_run_says_that_it_is_partial(a_result, a_report, printed):
    """Results so far are printed, with a note that they are partial."""
    text = printed(a_report(a_result(), partial=True))
    assert "PARTIAL: stopped before the end (no violation so far)" in text


def test_a_target_that_was_not_judged_to_the_end_is_named_beside_one_that_fails(a_result, a_report, printed):
    """The last line speaks of every target."""
    lost = a_result(target="b", binding="b", requirement="CM-T1", verdict=Verdict.ERROR, reason="ValueError: no")
    text = printed(
        a_report(a_result(target="a", binding="a", verdict=Verdict.FAIL), a_result(target="b", binding="b"), lost)
    )
    assert " ".join(text.split()).endswith("DOES NOT CONFORM: 1 of 2 targets: a. Not judged to the end: b.")


def test_a_target_that_could_not_be_judged_does_not_conform(a_result, a_report, printed):
    """An error is reported with its reason and does not end in CONFORMS."""
    text = printed(a_report(a_result(), a_result(requirement="CM-T1", verdict=Verdict.ERROR, reason="ValueError: no")))
    assert "ValueError: no" in text
    assert text.rstrip().splitlines()[-1] == "PARTIAL: the target could not be judged on CM-T1."


def test_where_nothing_could_be_judged_the_reason_is_told_once(a_result, a_report, printed):
    """One row counts the requirements, and the last line has the reason."""
    why = "in the plainest call the target took longer than 2 seconds and was stopped"
    ids = [f"LN-L{number}" for number in range(1, 13)]
    lost = [a_result(requirement=one, verdict=Verdict.ERROR, ratio=None, reason=why) for one in ids]
    text = printed(a_report(*lost, partial=True, lost=("torch",)))
    assert " ".join(text.split()).endswith(f"PARTIAL: nothing could be judged: {why}; --time-limit allows more.")
    assert "12 could not be judged" in text and not any(line.startswith("LN-L1 ") for line in text.splitlines())
    text = printed(a_report(a_result(verdict=Verdict.FAIL), *lost))
    assert "LN-F1 " in text and "12 others could not be judged" in text


def test_nothing_exercised_is_no_pass(a_result, a_report, printed):
    """A report in which nothing ran does not conform."""
    report = a_report(a_result(verdict=Verdict.NOT_EXERCISED, ratio=None))
    assert printed(report).rstrip().endswith("NOTHING WAS CHECKED")
    assert report.exit_status == 2


def test_declared_conventions_are_shown_with_their_reasons(a_result, a_report, printed):
    """Each declared convention has a line: what, by whom, why."""
    text = " ".join(printed(a_report(a_result())).split())
    assert "variance_algorithm=shifted torch.nn.LayerNorm: the kernel shifts by the first element" in text


def test_the_layers_of_a_model_are_told(a_result, a_report, printed):
    """An entry says for how many layers it stands, and which they are."""
    subject = {"target": "torch", "binding": "a.norm and 1 more", "op": "layer_norm", "fixed": ["eps=1e-05"]}
    text = printed(
        a_report(a_result(binding="a.norm and 1 more"), subjects=({**subject, "layers": ["a.norm", "b.norm"]},))
    )
    assert "= eps=1e-05 (a.norm and 1 more); 2 layers: a.norm, b.norm" in text


def test_what_is_unsupported_is_told_once_for_each_reason(a_result, a_report, printed):
    """Equal reasons are one line that lists the requirements."""
    text = printed(
        a_report(
            a_result(),
            a_result(requirement="LN-G10", verdict=Verdict.UNSUPPORTED, ratio=None, reason="no forward mode"),
            a_result(requirement="LN-G9", verdict=Verdict.UNSUPPORTED, ratio=None, reason="no forward mode"),
        )
    )
    assert text.count("no forward mode") == 1
    assert "(LN-G10, LN-G9;" in text


def test_the_seed_that_repeats_the_run_is_printed(a_result, a_report, printed):
    """Profile, seed and number of cases are at the end."""
    assert "profile quick, seed 7, 12 cases, 1.2 s" in printed(a_report(a_result()))


def test_the_version_of_what_was_judged_stands_in_every_form(a_result, a_report, printed):
    """The footer, Markdown, JUnit and JSON name the framework of the target with its version."""
    report = a_report(a_result())
    assert ", torch 2.13.0" in printed(report)
    assert ", torch 2.13.0" in report.to_markdown()
    assert '<property name="torch" value="2.13.0" />' in report.to_junit()
    assert json.loads(report.to_json())["versions"]["torch"] == "2.13.0"


def test_a_package_in_two_versions_is_named_with_its_target():
    """A target under another interpreter may have another NumPy than the one that judges."""
    subjects = [{"target": "mine.py:f", "framework": "numpy", "version": "1.26"}]
    assert with_targets({"numpy": "2.4"}, subjects) == {"numpy": "2.4", "numpy of mine.py:f": "1.26"}
