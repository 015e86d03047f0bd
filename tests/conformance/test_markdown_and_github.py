"""A report in a pull request: a comment in Markdown, and annotations at the lines of the functions."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from normspec import Report, Result, Verdict
from normspec.conformance.diagnosis.cause import Cause
from normspec.conformance.reporting.github import commands_stopped, workflow_commands

TARGET = "mine.py:f"


def subject(target: str = TARGET, file: str = "mine.py") -> dict[str, Any]:
    """A subject defined in a file."""
    return {"target": target, "binding": target, "op": "layer_norm", "framework": "numpy", "file": file, "line": 4}


def one(verdict: Verdict, requirement: str = "LN-F1", **rest: Any) -> Result:
    """A result."""
    fields: dict[str, Any] = {
        "level": "MUST",
        "dtype": "float32",
        "device": "cpu",
        "mode": "eager",
        "reason": "because",
    }
    fields |= {"target": TARGET, "binding": TARGET, "op": "layer_norm"} | rest
    return Result(requirement=requirement, verdict=verdict, **fields)


def of(*results: Result, **rest: Any) -> Report:
    """A report of these results."""
    fields: dict[str, Any] = {"profile": "quick", "seed": 0, "subjects": (subject(),)}
    return Report(results=results, **{**fields, **rest})


CAUSE = Cause(
    TARGET, "layer_norm", (TARGET,), ("float32",), ("ln-eps-on-std",), "Adds eps, 100%.", "eps, inside", "LN-F3", (),
    ("LN-F3", "LN-F1"),
)  # fmt: skip
BROKEN = of(
    one(Verdict.FAIL, "LN-F3"), one(Verdict.FAIL), one(Verdict.FAIL, "LN-L1"), one(Verdict.ADVICE, "CM-P3"),
    causes=(CAUSE,),
)  # fmt: skip
WILD = "<img src=x onerror=y> @someone | `code` **bold** [link](http://x) #1\n::error::no\n&amp;"


def parsed(command: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as the runner reads it: its name, its properties and its message."""
    match = re.fullmatch(r"::(\w+) ([^\n]*?)::([^\n]*)", command)
    assert match is not None, command
    properties = dict(pair.split("=", 1) for pair in match[2].split(","))
    back = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
    for code, letter in back:
        properties = {key: value.replace(code, letter) for key, value in properties.items()}
    message = match[3]
    for code, letter in (back[0], back[1], back[4]):
        message = message.replace(code, letter)
    return match[1], properties, message


def test_an_annotation_stands_at_the_line_of_the_function():
    """The cause is one error, an unexplained violation another, advice a warning; each names the file and the line."""
    found = [parsed(command) for command in workflow_commands(BROKEN)]
    assert [(kind, about["file"], about["line"]) for kind, about, _ in found] == [
        ("error", "mine.py", "4"),
        ("error", "mine.py", "4"),
        ("warning", "mine.py", "4"),
    ]
    assert found[0][1]["title"] == "mine.py:f: LN-F3 eps inside the root"
    assert found[0][2].startswith("Adds eps, 100%. (layer_norm of mine.py:f; float32)\nright: eps, inside")
    assert "LN-L1" in found[1][1]["title"] and "LN-F1" not in found[1][1]["title"]


def test_a_framework_has_no_line_and_is_annotated_all_the_same():
    """A target that no file of the user's defines appears on the job's page, without a place."""
    (command,) = workflow_commands(of(one(Verdict.FAIL), subjects=(subject() | {"file": "", "line": None},)))
    assert "file" not in parsed(command)[1]


def test_a_file_is_named_in_relation_to_the_repository(tmp_path, monkeypatch):
    """GitHub knows files by their path in the repository, wherever the command runs."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path / "kernels")
    for workspace, name in ((str(tmp_path), "kernels/mine.py"), ("", "mine.py"), (str(tmp_path / "other"), "mine.py")):
        (command,) = workflow_commands(of(one(Verdict.FAIL)), workspace)
        assert parsed(command)[1]["file"] == name


def test_what_was_not_judged_is_an_error_too():
    """A run that was stopped, or judged nothing, is no silence."""
    for report in (of(one(Verdict.PASS), partial=True), of(one(Verdict.UNSUPPORTED)), of(one(Verdict.ERROR))):
        (command,) = workflow_commands(report)
        assert parsed(command)[0] == "error"
    assert workflow_commands(of(one(Verdict.PASS))) == []


def test_more_than_github_shows_are_counted():
    """GitHub leaves out all but ten of a kind: the tenth says how many there are."""
    report = of(*(one(Verdict.FAIL, f"LN-L{number}") for number in range(1, 14)))
    commands = workflow_commands(report)
    assert len(commands) == 10
    assert "and 4 more" in commands[-1]


def test_what_a_target_says_is_no_command():
    """Line breaks, commas and colons of a message are escaped, and the text of the report is not read for commands."""
    report = of(one(Verdict.FAIL, target=WILD, binding=WILD, reason=WILD), subjects=(subject(WILD, "a,b:c.py"),))
    (command,) = workflow_commands(report)
    kind, about, _ = parsed(command)
    assert (kind, about["file"], about["title"].startswith(WILD)) == ("error", "a,b:c.py", True)
    first, *_, last = _printed("::error::no").splitlines()
    assert first == f"::stop-commands::{last.strip(':')}" and len(last) > 30
    assert _printed("x") != _printed("x")


def _printed(text: str) -> str:
    stream = io.StringIO()
    with commands_stopped(stream):
        print(text, file=stream)
    return stream.getvalue()


def test_a_comment_has_the_verdict_the_causes_and_what_stands_beside_them():
    """Violations that a cause explains are not repeated; the place of the function is given."""
    text = BROKEN.to_markdown()
    assert text.startswith("### normspec: DOES NOT CONFORM: 3 violated: ")
    assert "| ✗ | `mine.py:f` at `mine.py:4` | DOES NOT CONFORM" in text
    assert "**Adds eps, 100%.** `mine.py:f`" in text and "- breaks: LN-F3, LN-F1" in text
    (violations,) = re.findall("<details>.*</details>", text, re.S)
    assert "LN-L1" in violations and "LN-F1" not in violations


def test_a_comment_says_what_changed():
    """With an earlier report, new violations have their own heading."""
    text = BROKEN.to_markdown(of(*(one(Verdict.PASS, result.requirement) for result in BROKEN.results)))
    assert "#### What changed" in text and "REGRESSION: 1 target ceased to conform, 1 new cause" in text
    assert "NOTHING CHANGED" in BROKEN.to_markdown(BROKEN)


def test_whatever_a_target_says_is_text_in_a_comment():
    """Names and reasons produce no markup, HTML or mentions, in the table or below it."""
    wild = one(Verdict.FAIL, target=WILD, binding=WILD, reason=WILD)
    text = of(wild, subjects=(subject(WILD, WILD),)).to_markdown()
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tags = set(re.findall(r"<(\w+)", html))
    assert tags <= {
        "h3",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "ul",
        "li",
        "code",
        "p",
        "sub",
    }
    assert html.count("<tr>") == 2
    outside = re.sub("<code>.*?</code>", "", html, flags=re.S)
    assert not re.search(r"@\w", outside)


@pytest.mark.parametrize("count", [300, 3000])
def test_a_comment_is_not_longer_than_github_takes(count):
    """GitHub refuses more than 65,536 characters: the comment is cut, and says so."""
    results = [one(Verdict.FAIL, target=f"{number}.py:f", binding=f"{number}.py:f") for number in range(count)]
    text = of(*results, subjects=()).to_markdown()
    assert len(text) < 65_536 and text.endswith("(cut off here: the whole is in the JSON)\n")
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize(("cases", "words"), [(0, "0 cases"), (1, "1 case"), (2498, "2,498 cases")])
def test_a_number_of_cases_is_a_number_of_them(cases, words):
    """One is a case, in the report and in the comment."""
    report = of(one(Verdict.PASS, cases=cases))
    assert f"seed 0, {words};" in report.to_markdown() and f"seed 0, {words}, " in str(report)
