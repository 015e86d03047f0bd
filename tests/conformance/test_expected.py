"""Expected failures: a failure as expected deviates, and a wrong entry is reported, before the run or after it."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

import pytest

import normspec
from normspec import Report, Result, Verdict
from normspec.conformance.diagnosis.cause import Cause
from normspec.conformance.expected import entry as entry_module
from normspec.conformance.expected.applying import apply_expected
from normspec.conformance.expected.drafting import drafts, table_in
from normspec.conformance.expected.entry import entries_of
from normspec.conformance.requests.configuration import configuration, expected_failures
from normspec.conformance.requests.request import Request
from normspec.spec.errors import NormspecError

TARGET = "torch"
SUBJECT = {"target": TARGET, "binding": "torch.a", "op": "layer_norm", "framework": "torch", "version": "2.13.0+cpu"}
PLAIN = {"requirement": "LN-F3", "reason": "being mended"}


def one(verdict: Verdict, requirement: str = "LN-F3", dtype: str = "float32", **rest: Any) -> Result:
    """A result."""
    fields: dict[str, Any] = {
        "level": "MUST",
        "device": "cpu",
        "mode": "eager",
        "reason": "because",
        "op": "layer_norm",
    }
    fields |= {"target": TARGET, "binding": "torch.a"} | rest
    return Result(requirement=requirement, verdict=verdict, dtype=dtype, **fields)


def after(entries: list[dict[str, Any]], *results: Result, asked: dict[str, Any] | None = None, **rest: Any) -> Report:
    """The report of these results, judged by these entries, of a run with these requests."""
    fields: dict[str, Any] = {"targets": (TARGET,), "op": None, "framework": None, "dtypes": None, "device": "cpu"}
    fields |= {"conventions": {}, "profile": "quick", "seed": 0} | (asked or {})
    report = Report(results=results, profile="quick", seed=0, **{"subjects": (SUBJECT,), **rest})
    return apply_expected(report, entries_of(entries), Request(**fields))


def test_what_fails_as_expected_deviates_and_the_rest_stays():
    """The result keeps its case and its ratio, has the entry's reason, and the target conforms."""
    report = after([{**PLAIN, "link": "https://a.b"}], one(Verdict.PASS, "LN-F1"), one(Verdict.FAIL, ratio=9.0))
    result = report.results[1]
    assert (result.verdict, result.reason, result.ratio) == (Verdict.DEVIATES, "being mended", 9.0)
    assert result.known[0].links == ("https://a.b",)
    assert report.conforms and report.exit_status == 0
    assert str(report).splitlines()[-1] == "CONFORMS except for expected failures (LN-F3)"
    assert report.expected[0].shown == 1 and report.unmet() == ()


def test_a_binding_is_meant_by_its_whole_name():
    """An entry that was drafted for a binding whose name is an expression, with brackets, is about it."""
    name = "torch x + sum(w[k] * H[k])"
    report = after([{**PLAIN, "binding": name}], one(Verdict.FAIL, binding=name), one(Verdict.FAIL))
    assert [result.verdict for result in report.results] == [Verdict.DEVIATES, Verdict.FAIL]


@pytest.mark.parametrize(
    ("limits", "excused"),
    [
        ({}, True),
        ({"target": "torch"}, True),
        ({"target": "jax"}, False),
        ({"operator": "layer_norm"}, True),
        ({"binding": "torch.*"}, True),
        ({"binding": "torch.b"}, False),
        ({"dtypes": ["float32"]}, True),
        ({"dtypes": ["float16"]}, False),
        ({"until": "2.14"}, True),
        ({"until": "2.13"}, False),
        ({"until": "2.13.1"}, True),
        ({"until": "2999-01-01"}, True),
        ({"requirement": "LN-F*"}, True),
        ({"requirement": "LN-G1"}, False),
    ],
)
def test_an_entry_excuses_what_lies_within_its_limits(limits, excused):
    """Target, operator, binding, dtypes, and an end date; anything outside fails as always."""
    report = after([{**PLAIN, **limits}], one(Verdict.FAIL), one(Verdict.PASS, "CM-T1"))
    assert (report.results[0].verdict is Verdict.DEVIATES) is excused
    assert report.exit_status == (0 if excused else 1)


@pytest.mark.parametrize(
    ("results", "told"),
    [
        ([one(Verdict.PASS)], "it passes (LN-F3 in float32): remove it from the expected"),
        ([one(Verdict.FAIL), one(Verdict.PASS, dtype="float64")], "it passes (LN-F3 in float64)"),
        ([one(Verdict.FAIL), one(Verdict.PASS, binding="torch.b")], "it passes (LN-F3 in float32)"),
        ([one(Verdict.DEVIATES)], "it passes"),
        ([one(Verdict.UNSUPPORTED)], "nothing that it is about could fail (unsupported)"),
        ([one(Verdict.NOT_EXERCISED)], "nothing that it is about could fail (not-exercised)"),
        ([], "it matches nothing that was checked"),
    ],
)
def test_an_entry_that_is_not_met_is_told_and_ends_with_1(results, told):
    """One that passes, even in one dtype or one binding, or that nothing could fail, or that matches nothing."""
    report = after([PLAIN], one(Verdict.PASS, "LN-F1"), *results)
    (expectation,) = report.unmet()
    assert told in expectation.wrong
    assert report.exit_status == 1 and not report.conforms
    for text in (str(report), report.to_markdown().replace("\\", ""), report.to_junit()):
        assert "LN-F3" in text and told.split(" (")[0] in " ".join(text.split())
    assert "AN EXPECTED FAILURE DID NOT HAPPEN" in str(report).splitlines()[-1]


def test_an_entry_past_its_version_excuses_nothing_and_is_told():
    """From the version on the violation fails again, and the entry is wrong whether or not it does."""
    for result in (one(Verdict.FAIL), one(Verdict.PASS)):
        report = after([{**PLAIN, "until": "2.13"}], result)
        assert report.results[0].verdict is result.verdict
        assert "expected until 2.13, and the framework has reached that version" in report.unmet()[0].wrong


@pytest.mark.parametrize(
    ("asked", "entry"),
    [
        ({"op": ("batch_norm",)}, {}),
        ({"dtypes": ("float16",)}, {"dtypes": ["float32"]}),
        ({"only": ("LN-G*",)}, {}),
        ({}, {"target": "jax"}),
        ({"binding": ("torch.a",)}, {"binding": "torch.b"}),
    ],
)
def test_an_entry_about_what_was_not_asked_for_is_left_alone(asked, entry):
    """A run of part of what a project checks says nothing about the rest."""
    report = after([{**PLAIN, **entry}], one(Verdict.PASS, "CM-T1", dtype="float16"), asked=asked)
    assert report.unmet() == () and report.exit_status == 0


def test_a_run_that_was_stopped_tells_of_no_entry_that_it_did_not_come_to():
    """Requirements that were not judged may still fail."""
    report = after([PLAIN], one(Verdict.PASS, "LN-F1"), partial=True)
    assert report.unmet() == () and report.exit_status == 3


def test_causes_and_companions_of_what_is_expected_are_left_out():
    """A cause that explains nothing more is dropped; a companion of an excused violation becomes separate."""
    cause = Cause(TARGET, "layer_norm", ("torch.a",), ("float32",), ("f",), "Wrong.", "", "LN-F3", (), ("LN-F3",))
    report = after(
        [PLAIN],
        one(Verdict.FAIL),
        one(Verdict.FAIL, "LN-L1", same_case_as="LN-F3", follows_from=("LN-F3",)),
        causes=(cause,),
    )
    assert report.causes == ()
    (left,) = report.failures()
    assert (left.requirement, left.same_case_as, left.follows_from) == ("LN-L1", "", ())
    assert "1 violated: LN-L1" in str(report)


WRONG: dict[str, tuple[Any, str]] = {
    "no reason": ({"requirement": "LN-F3"}, "has no reason: say in `reason` why"),
    "an empty reason": ({**PLAIN, "reason": "  "}, "has no reason"),
    "no requirement": ({"reason": "x"}, "lacks requirement"),
    "a requirement that is none": ({**PLAIN, "requirement": "LN-F99"}, "no requirement, pattern"),
    "an operator that is none": ({**PLAIN, "operator": "layernorm"}, "layernorm"),
    "an operator that the requirement is not about": ({**PLAIN, "operator": "batch_norm"}, "matches nothing"),
    "a dtype that is none": ({**PLAIN, "dtypes": ["float8"]}, "unknown dtype 'float8'"),
    "dtypes that are a text": ({**PLAIN, "dtypes": "float16"}, "write a list"),
    "a target that is none": ({**PLAIN, "target": "torhc"}, "torhc"),
    "a file that is not there": ({**PLAIN, "target": "nowhere.py:f"}, "nowhere.py cannot be read"),
    "a day that is past": ({**PLAIN, "until": "2020-01-01"}, "expected until 2020-01-01, which is past"),
    "a day that is none": ({**PLAIN, "until": "2027-02-30"}, "which is not a date"),
    "a day without zeros": ({**PLAIN, "until": "2027-3-31"}, "give a date such as 2027-03-31"),
    "a day with slashes": ({**PLAIN, "until": "2027/03/31"}, "give a date such as 2027-03-31"),
    "a day with points": ({**PLAIN, "until": "31.03.2027"}, "give a date such as 2027-03-31"),
    "an until that is neither": ({**PLAIN, "until": "soon"}, "give a date such as"),
    "an unknown key": ({**PLAIN, "why": "x"}, "unknown key 'why'"),
    "no table": ("LN-F3", "write a table"),
    "a link that is a number": ({**PLAIN, "link": 7}, "a text is expected, and not 7"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_entry_that_cannot_be_used_is_refused_with_its_number(name):
    """Which entry it is, and what to do, before anything is checked."""
    entry, told = WRONG[name]
    with pytest.raises(NormspecError) as raised:
        normspec.check("numpy", expected=[PLAIN, entry])
    assert "entry 2" in str(raised.value) and told in str(raised.value) and "\n" not in str(raised.value)


def test_the_last_day_is_a_day_on_which_it_is_expected(monkeypatch):
    """Until a day means that day too."""
    day = {**PLAIN, "until": "2027-03-31"}
    for today, usable in ((datetime.date(2027, 3, 31), True), (datetime.date(2027, 4, 1), False)):
        monkeypatch.setattr(entry_module, "today", lambda today=today: today)
        if usable:
            assert entries_of([day])[0].until == "2027-03-31"
        else:
            with pytest.raises(NormspecError, match="which is past"):
                entries_of([day])


ENTRY = '[[expected]]\nrequirement = "LN-F3"\ntarget = "mine.py:f"\nreason = "being mended"\nuntil = 2999-01-01\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a function and its expected failures."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def f(x): ...\n", encoding="utf-8")
    (tmp_path / "normspec.toml").write_text(ENTRY, encoding="utf-8")
    return tmp_path


def test_entries_stand_in_either_file_and_not_in_both(project, monkeypatch):
    """normspec.toml has the same keys as pyproject.toml; its paths are relative to it, from any working folder."""
    (project / "pyproject.toml").write_text('[tool.normspec]\nprofile = "quick"\n', encoding="utf-8")
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    values = configuration().values
    assert values["profile"] == "quick"
    assert values["expected"][0].target.replace("\\", "/") == "../mine.py:f"
    assert values["expected"][0].until == "2999-01-01"
    own = ENTRY.replace("[[expected]]", "[[tool.normspec.expected]]")
    (project / "pyproject.toml").write_text(own, encoding="utf-8")
    with pytest.raises(NormspecError, match=r"expected is also in .*pyproject\.toml: keep"):
        configuration()
    assert expected_failures(project / "pyproject.toml") == expected_failures(project / "normspec.toml")


def test_two_hundred_damaged_files_of_expected_failures_are_one_clear_error_each(project):
    """Characters removed, doubled or changed at random: the file is read as it is, or refused in one line."""
    draw, refused = random.Random(0), 0
    for _ in range(300):
        at, letter = draw.randrange(len(ENTRY)), draw.choice('x"=[\n\x00é7')
        (project / "normspec.toml").write_text(ENTRY[:at] + letter + ENTRY[at + draw.randrange(3) :], encoding="utf-8")
        try:
            expected_failures(project / "normspec.toml")
        except NormspecError as error:
            refused += 1
            assert "normspec.toml" in str(error) and "\n" not in str(error) and len(str(error)) < 3000
    assert refused >= 200
    assert sorted(file.name for file in project.iterdir()) == ["mine.py", "normspec.toml"]


def test_a_draft_is_refused_until_its_reason_is_filled_in_and_excuses_then(project):
    """Bindings that fail alike are one entry; the draft is TOML, and covers exactly the present failures."""
    here = {"target": "mine.py:f", "binding": "mine.py:f"}
    results = [one(Verdict.FAIL, dtype=dtype, **here) for dtype in ("float16", "float32")]
    results.append(one(Verdict.PASS, dtype="float64", **here))
    text = drafts(Report(results=tuple(results), profile="quick", seed=0), str(project), "expected")
    (project / "normspec.toml").write_text(text, encoding="utf-8")
    with pytest.raises(NormspecError, match="has no reason"):
        configuration()
    (project / "normspec.toml").write_text(text.replace('reason = ""', 'reason = "known"'), encoding="utf-8")
    (entry,) = expected_failures(project / "normspec.toml")
    assert (entry.requirement, entry.target, entry.dtypes) == ("LN-F3", "mine.py:f", ("float16", "float32"))
    assert [entry.covers(result) for result in results] == [True, True, False]


@pytest.mark.parametrize("name", ["\N{OWL}", "é", "a b", 'a"b', "a\x7fb"])
def test_a_draft_names_any_file(project, name):
    """A name that JSON writes in another way than TOML, such as one with a character beyond 16 bits, is read back."""
    (project / f"{name}.py").write_text("def f(): ...", encoding="utf-8")
    result = one(Verdict.FAIL, target=f"{name}.py:f")
    text = drafts(Report(results=(result,), profile="quick", seed=0), str(project), "expected")
    (project / "normspec.toml").write_text(text.replace('reason = ""', 'reason = "known"'), encoding="utf-8")
    (entry,) = expected_failures(project / "normspec.toml")
    assert entry.covers(result)


def test_a_draft_names_the_bindings_where_they_differ():
    """Where one of two spellings fails, the entry is about that one."""
    results = (one(Verdict.FAIL), one(Verdict.PASS, binding="torch.b"))
    text = drafts(Report(results=results, profile="quick", seed=0), "", "expected")
    assert 'binding = "torch.a"' in text and 'target = "torch"' in text
    alike = (one(Verdict.FAIL), one(Verdict.FAIL, binding="torch.b"))
    assert "binding" not in drafts(Report(results=alike, profile="quick", seed=0), "", "expected")


def test_a_report_with_expectations_is_read_back(tmp_path):
    """The JSON has the outcome of each entry."""
    report = after([PLAIN, {**PLAIN, "requirement": "LN-F1"}], one(Verdict.FAIL), one(Verdict.PASS, "LN-F1"))
    (tmp_path / "r.json").write_text(report.to_json(), encoding="utf-8")
    again = normspec.load_report(tmp_path / "r.json")
    assert again.expected == report.expected and again.to_json() == report.to_json()
    told = json.loads(report.to_json())["expected"][1]
    assert told["passes"] == [{"op": "layer_norm", "binding": "torch.a", "requirement": "LN-F1", "dtype": "float32"}]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("normspec.toml", "expected"),
        ("pyproject.toml", "tool.normspec.expected"),
        ("mine.toml", "tool.normspec.expected"),
    ],
)
def test_a_draft_is_written_where_its_file_is_read(name, table, tmp_path):
    """`--config` reads [tool.normspec] of any file that is not called normspec.toml."""
    assert table_in(str(tmp_path / name)) == table
