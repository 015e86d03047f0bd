"""`normspec diff`: status 1 if something is worse, 0 if things are better or only moved, 2 for unreadable reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import normspec
from normspec import Report, Result, Verdict
from normspec.conformance.command_line.root import run
from normspec.conformance.diagnosis.cause import Cause
from normspec.conformance.results.changes import changes

TARGET = "mine.py:f"
SUBJECT = {"target": TARGET, "binding": TARGET, "op": "layer_norm", "framework": "numpy", "version": "2.4.6"}
SUBJECT |= {"file": "mine.py", "line": 4}


def one(verdict: Verdict = Verdict.PASS, requirement: str = "LN-F1", **rest: Any) -> Result:
    """A result."""
    fields = {"level": "MUST", "dtype": "float32", "device": "cpu", "mode": "eager", "ratio": 0.4, "cases": 3}
    fields |= {"target": TARGET, "binding": TARGET, "op": "layer_norm"} | rest
    return Result(requirement=requirement, verdict=verdict, **fields)


def of(*results: Result, **rest: Any) -> Report:
    """A report of these results."""
    fields: dict[str, Any] = {"profile": "quick", "seed": 0, "subjects": (SUBJECT,)}
    return Report(results=results, **{**fields, **rest})


CAUSE = Cause(
    TARGET, "layer_norm", (TARGET,), ("float32",), ("ln-eps-on-std",), "Adds eps.", "", "LN-F3", (), ("LN-F3",)
)
SOUND = of(one(), one(requirement="LN-F3"))
BROKEN = of(one(), one(Verdict.FAIL, "LN-F3", ratio=9.0), causes=(CAUSE,))


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[Report, str], str]:
    """A function that keeps a report under a name."""

    def keep(report: Report, name: str) -> str:
        (tmp_path / name).write_text(report.to_json(), encoding="utf-8")
        return str(tmp_path / name)

    return keep


@pytest.mark.parametrize(
    ("old", "new", "status", "told"),
    [
        (SOUND, SOUND, 0, "NOTHING CHANGED"),
        (SOUND, BROKEN, 1, "1 target ceased to conform, 1 new cause, 1 requirement violated now."),
        (BROKEN, SOUND, 0, "NO REGRESSION"),
        (SOUND, of(one(), one(Verdict.UNSUPPORTED, "LN-F3", ratio=None)), 1, "unsupported, was pass"),
        (SOUND, of(one()), 1, "LN-F3 eps inside the root: not asked, was pass"),
        (of(one()), SOUND, 0, "Judged now"),
        (SOUND, of(one(), one(requirement="LN-F3", ratio=0.81)), 0, "float32 0.81, was 0.40"),
        (of(one(), one(Verdict.ADVICE, "CM-P3")), of(one(), one(Verdict.FAIL, "CM-P3")), 1, "fail, was advice"),
        (SOUND, of(one(), one(Verdict.DEVIATES, "LN-F3")), 0, "NOTHING CHANGED"),
        (BROKEN, of(one(), one(Verdict.FAIL, "LN-F3", ratio=1e9), causes=(CAUSE,)), 0, "NOTHING CHANGED"),
        (SOUND, of(one(), one(requirement="LN-F3"), profile="standard"), 0, "profile was quick, and is now standard"),
        (SOUND, of(one(), one(requirement="LN-F3"), partial=True), 1, "the new run was not finished"),
    ],
)
def test_what_changed_is_told_and_what_is_worse_ends_with_1(kept, capsys, old, new, status, told):
    """Each change is named with its earlier state; the status says whether something is worse."""
    assert run(["diff", kept(old, "old.json"), kept(new, "new.json")]) == status
    assert told in " ".join(capsys.readouterr().out.split())


def test_a_regression_names_the_line_of_the_function(kept, capsys):
    """The target that ceased to conform, the cause and the requirement each have the file and the line."""
    assert run(["diff", kept(SOUND, "old.json"), kept(BROKEN, "new.json")]) == 1
    assert " ".join(capsys.readouterr().out.split()).count("mine.py:f at mine.py:4") == 3


@pytest.mark.parametrize(("was", "now", "moved"), [
    (0.4, 0.8, False), (0.4, 0.81, True), (0.81, 0.4, True), (0.001, 0.009, False), (0.0, 0.3, True),
    (None, 0.3, False),
])  # fmt: skip
def test_an_error_moved_where_it_is_more_than_twice_the_other(was, now, moved):
    """Exactly twofold is not more, and a number shown as `<.01` never counts as moved."""
    assert bool(changes(of(one(ratio=was)), of(one(ratio=now))).moved) is moved


def test_the_json_has_the_changes_with_the_line_and_both_verdicts(kept, tmp_path, capsys):
    """`--json FILE` and `--json -` write the same object."""
    files = kept(SOUND, "old.json"), kept(BROKEN, "new.json")
    assert run(["diff", *files, "--json", str(tmp_path / "changes.json")]) == 1
    capsys.readouterr()
    assert run(["diff", *files, "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "changes.json").read_text(encoding="utf-8"))
    assert found["regression"] is True
    assert found["ceased"] == [{"target": TARGET, "file": "mine.py", "line": 4}]
    (violated,) = found["violated"]
    assert (violated["requirement"], violated["file"], violated["line"]) == ("LN-F3", "mine.py", 4)
    assert violated["results"][0]["old"] == {"verdict": "pass", "ratio": 0.4}
    assert violated["results"][0]["new"] == {"verdict": "fail", "ratio": 9.0}
    assert found["new_causes"] == [json.loads(json.dumps(attrs.asdict(CAUSE)))]


@pytest.mark.parametrize("names", [("good", "nowhere"), ("nowhere", "good"), ("good", "damaged")])
def test_a_report_that_cannot_be_read_is_one_line_and_status_2(kept, tmp_path, capsys, names):
    """The line names the file."""
    kept(SOUND, "good")
    (tmp_path / "damaged").write_text("{}", encoding="utf-8")
    assert run(["diff", *(str(tmp_path / name) for name in names)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and str(tmp_path / next(name for name in names if name != "good")) in told


def test_several_dtypes_and_bindings_of_a_requirement_are_one_change():
    """Where each of four results changed alike, one change says where."""
    bindings = [f"torch.{name}" for name in "ab"]
    places = [{"binding": name, "dtype": dtype} for name in bindings for dtype in ("float32", "float64")]
    old = of(*(one(**place) for place in places))
    new = of(*(one(Verdict.FAIL, **place) for place in places))
    (change,) = changes(old, new).violated
    assert (change.bindings, change.dtypes) == (("torch.a", "torch.b"), ("float32", "float64"))


def test_versions_and_platform_are_those_of_the_run_that_was_read(kept):
    """A report that is read shows the versions it was written with, and not those of this process."""
    name = kept(attrs.evolve(SOUND, versions={"python": "1.2.3"}), "r.json")
    assert "python 1.2.3" in str(normspec.load_report(name))


def test_a_file_of_changes_is_replaced_and_a_report_that_is_read_is_not(kept, tmp_path, capsys):
    """A second run writes the same file again; a name that is read as well is refused, and keeps what it held."""
    old, new, found = kept(SOUND, "old.json"), kept(SOUND, "new.json"), str(tmp_path / "changes.json")
    assert run(["diff", old, new, "--json", found]) == 0
    assert run(["diff", old, new, "--json", found]) == 0
    assert run(["diff", old, new, "--json", old]) == 2
    assert "would replace a report that this command reads" in capsys.readouterr().err
    assert (tmp_path / "old.json").read_text(encoding="utf-8") == SOUND.to_json()
