"""JUnit's XML: every result is a test case that CI systems read as the verdict that it is."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest

import normspec
from normspec import Report, Result, Verdict

#: The form that Jenkins' reader takes (junit-10.xsd of its xunit plugin), by element: required attributes, others,
#: children.
FORM = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "group"},
        {"properties", "testcase", "system-out", "system-err", "testsuite"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name"}, {"classname", "time", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    **dict.fromkeys(("skipped", "error", "failure"), (set(), {"type", "message"}, set())),
    **dict.fromkeys(("system-out", "system-err"), (set(), set(), set())),
}


def held_to_the_form(element):
    """Every element has the attributes and the children that it may have, and those that it must."""
    required, others, children = FORM[element.tag]
    assert required <= set(element.keys()) <= required | others, element.attrib
    for child in element:
        assert child.tag in children, (element.tag, child.tag)
        held_to_the_form(child)


def read(report):
    """The suites of a report; their form is checked, and their counts against their contents."""
    root = ElementTree.fromstring(report.to_junit().encode())
    held_to_the_form(root)
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(count)) == len(suite.findall(f"testcase/{tag}"))
    for count in ("tests", "failures", "errors"):
        assert int(root.get(count)) == sum(int(suite.get(count)) for suite in root)
    return list(root)


def result(verdict, **changes):
    """A result with this verdict."""
    fields = {
        "target": "mine.py:f", "binding": "mine.py:f", "op": "layer_norm", "requirement": "LN-F1", "level": "MUST",
        "dtype": "float32", "device": "cpu", "mode": "eager", "verdict": verdict, "reason": "because",
    }  # fmt: skip
    return Result(**{**fields, **changes})


def eps_outside(x, gamma, beta, *, eps, axes):
    """Layer normalisation with eps outside the root."""
    d = x - x.mean(axes, keepdims=True)
    return d / (np.sqrt(np.square(d).mean(axes, keepdims=True)) + eps)


def test_a_run_has_a_case_for_each_result_and_the_failure_says_what_the_terminal_does():
    """The violation names the requirement, its cause, the case and the line that defines the function."""
    report = normspec.check(eps_outside, op="layer_norm", dtypes=["float32"], profile="quick", only="LN-F*")
    (suite,) = read(report)
    assert len(suite.findall("testcase")) == len(report.results)
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {f"{one.requirement}[float32]" for one in report.failures()}
    (failure,) = suite.findall("testcase[@name='LN-F3[float32]']/failure")
    assert failure.get("type") == "LN-F3"
    line = eps_outside.__code__.co_firstlineno
    assert suite.get("file").endswith("test_junit.py")
    assert f"test_junit.py:{line}" in failure.text
    assert "eps" in failure.text and "implied" in failure.text and "exact" in failure.text
    assert all(f"Cause: {cause.sentence}" in failure.text for cause in report.causes)


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        (Verdict.PASS, None),
        (Verdict.FAIL, "failure"),
        (Verdict.ADVICE, "system-out"),
        (Verdict.DEVIATES, "system-out"),
        (Verdict.UNSUPPORTED, "skipped"),
        (Verdict.NOT_EXERCISED, "skipped"),
        (Verdict.ERROR, "error"),
    ],
)
def test_each_verdict_is_what_a_ci_system_makes_of_it(verdict, tag):
    """A violated SHOULD and a declared deviation pass and say why; a requirement that was not judged is skipped."""
    (suite,) = read(Report(results=(result(Verdict.PASS), result(verdict)), profile="quick", seed=0))
    case = suite.findall("testcase")[1]
    assert [child.tag for child in case] == ([] if tag is None else [tag])
    assert tag is None or "because" in ElementTree.tostring(case, encoding="unicode")


def test_a_run_that_was_not_finished_has_an_error_though_nothing_failed():
    """Requirements that did not run never pass, whether the run was stopped or nothing could be judged."""
    for report in (
        Report(results=(result(Verdict.PASS),), profile="quick", seed=0, partial=True),
        Report(results=(result(Verdict.UNSUPPORTED),), profile="quick", seed=0),
        Report(results=(result(Verdict.PASS),), profile="quick", seed=0, defects=("Traceback",)),
    ):
        (suite,) = read(report)
        assert suite.get("errors") == "1"


def test_whatever_a_target_says_is_text():
    """Markup, control characters and halves of surrogate pairs in names and reasons leave a document that is read."""
    wild = '<script>]]>&"\x00\x1b[31m\ud800\ufffe é'
    rows = [result(verdict, target=wild, binding=wild, reason=wild) for verdict in Verdict]
    (suite,) = read(Report(results=tuple(rows), profile="quick", seed=0))
    assert suite.get("name") == '<script>]]>&"\\x00\\x1b[31m\\ud800\\ufffe é'


def test_a_target_has_a_suite_of_its_own():
    """Two targets, two suites, each with its cases; two bindings of one operator have different names."""
    rows = [
        result(Verdict.PASS, target="torch", binding=f"torch.{name}", dtype=dtype)
        for name in "ab"
        for dtype in ("float32", "float64")
    ]
    suites = read(Report(results=(*rows, result(Verdict.PASS)), profile="quick", seed=0))
    assert [(suite.get("name"), suite.get("tests")) for suite in suites] == [("torch", "4"), ("mine.py:f", "1")]
    names = Counter((case.get("classname"), case.get("name")) for suite in suites for case in suite.iter("testcase"))
    assert set(names.values()) == {1}
