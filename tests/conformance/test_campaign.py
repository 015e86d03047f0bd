"""Campaigns: finished work is kept, whatever ends the command, and the summary repeats the reports."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

import normspec
from normspec import Verdict
from normspec.adapters.declarations import Declarations
from normspec.adapters.remote.process import Limits
from normspec.conformance.campaign import campaign as identities
from normspec.conformance.campaign.campaign import Campaign, keys_of, without
from normspec.conformance.campaign.plot import NoPlot, drawn
from normspec.conformance.campaign.record import records_of, repeat_command
from normspec.conformance.campaign.running import run
from normspec.conformance.campaign.store import Store, WrongFolder
from normspec.conformance.campaign.summary import Summary
from normspec.conformance.command_line.root import main
from normspec.conformance.engine.progress import Progress
from normspec.conformance.requests.request import Request
from normspec.conformance.results.ratios import BINS, EDGES, bin_of
from normspec.conformance.running.single_process import SingleProcess
from normspec.conformance.running.unit import Unit

REQUEST = Request(
    targets=(), op=("residual",), framework=None, dtypes=("float32", "float64"), device="cpu", conventions={},
    profile="quick", seed=0,
)  # fmt: skip
SEEDS = range(2)
#: The same as a command.
COMMAND = "campaign numpy --op residual --dtype float32 --dtype float64 --profile quick --seeds 0:2 --out"

#: A residual connection that is off in its last digits.
FAULTY = """
import numpy as np


def residual(x, branch, *, shortcut=None, activation=None):
    y = (x if shortcut is None else shortcut(x)) + branch(x) * x.dtype.type(1.01)
    return y if activation is None else activation(y)
"""


def go_on(out: Path, *asked: str, seeds: range = SEEDS, jobs: int = 1, **changes: Any) -> Summary:
    """The campaign, started or continued."""
    return run(asked or ("numpy",), attrs.evolve(REQUEST, **changes), seeds, out, jobs=jobs)


def figures(summary: Summary) -> dict[str, Any]:
    """The contents of a summary, without the time taken."""
    return {name: value for name, value in json.loads(summary.to_json()).items() if name != "seconds"}


#: The reports of judged units, so that tests about keeping need not judge them again.
JUDGED: dict[Unit, normspec.Report] = {}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, Summary]:
    """A campaign that nothing stopped, and its folder."""
    out, judge = tmp_path_factory.mktemp("campaign") / "whole", SingleProcess.judge

    def remembered(self, unit, listener=None):
        JUDGED[unit] = judge(self, unit, listener)
        return JUDGED[unit]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SingleProcess, "judge", remembered)
        return out, go_on(out)


@pytest.fixture
def judged(whole, monkeypatch) -> list[Unit]:
    """The units judged in this test, in a list that it can check."""
    units = []

    def judge(self, unit, listener=None):
        units.append(unit)
        return JUDGED.get(unit) or attrs.evolve(JUDGED[attrs.evolve(unit, seed=0)], seed=unit.seed)

    monkeypatch.setattr(SingleProcess, "judge", judge)
    return units


@pytest.fixture
def cut(whole, tmp_path) -> Callable[[int], Path]:
    """A function that makes a folder of the same campaign with only this many bytes of the units left."""

    def make(size: int) -> Path:
        out = tmp_path / "cut"
        out.mkdir()
        (out / "request.json").write_bytes((whole[0] / "request.json").read_bytes())
        (out / "units.jsonl").write_bytes((whole[0] / "units.jsonl").read_bytes()[:size])
        return out

    return make


def test_the_summary_is_what_the_reports_say(whole):
    """Cases, verdicts, largest ratios and their number are those of `check` on each seed."""
    _, summary = whole
    reports = [
        normspec.check("numpy", op="residual", dtypes=["float32", "float64"], profile="quick", seed=seed, jobs=1)
        for seed in SEEDS
    ]
    results = [result for report in reports for result in report.results]
    assert summary.units == 4 and summary.missing == 0 and summary.exit_status == 0
    assert summary.cases == sum(result.cases for result in results) > 0
    assert summary.counts["pass"] == sum(report.counts()["pass"] for report in reports)
    for (target, requirement, dtype), near in summary.nearness.items():
        those = [r for r in results if (r.target, r.requirement, r.dtype) == (target, requirement, dtype)]
        assert near.cases == sum(result.cases for result in those)
        ratios = [result.ratio for result in those if result.ratio is not None]
        assert near.ratio == max(ratios, default=None)
        if near.ratio is not None:
            assert near.histogram[bin_of(near.ratio)] > 0 and not any(near.histogram[bin_of(near.ratio) + 1 :])


def test_a_finished_campaign_has_nothing_to_do(whole, judged):
    """The same command judges no unit again, and reports the same."""
    out, summary = whole
    assert figures(go_on(out)) == figures(summary)
    assert judged == []


def test_more_seeds_go_on_with_a_campaign(whole, cut, judged):
    """The seeds may change; with fewer of them the others' records stay."""
    out = cut(1 << 30)
    more = go_on(out, seeds=range(3))
    assert more.units == 6 and more.missing == 0 and more.cases > whole[1].cases
    assert {unit.seed for unit in judged} == {2} and len(judged) == 2
    assert go_on(out, seeds=range(1)).units == 6


def test_a_summary_names_the_seeds_of_earlier_commands_too():
    """Its figures are of all units in the folder."""
    summary = Summary({"identity": {"targets": ["numpy"]}, "kinds": [], "seeds": [4, 6]}, seeds={0, 1, 3, 6, 9})
    assert summary.stretches() == [(0, 2), (3, 7), (9, 10)]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_record_that_was_cut_off_is_noticed_and_its_unit_done_again(whole, cut, judged, share):
    """However much of the last record reached the disk, the campaign ends like one without interruption."""
    lines = (whole[0] / "units.jsonl").read_bytes().splitlines(keepends=True)
    out = cut(len(b"".join(lines[:-1])) + int(share * len(lines[-1])))
    assert Summary.of(Store.read(out)).missing == 1
    summary = go_on(out)
    assert summary.damaged == (share > 0)
    assert figures(attrs.evolve(summary, damaged=0)) == figures(whole[1])
    assert (out / "units.jsonl").read_bytes().count(b"\n") == 4 and len(judged) == 1


def test_a_damaged_record_is_noticed_and_its_unit_done_again(whole, cut, judged):
    """If a line in the middle is damaged, only its unit is judged again."""
    out = cut(1 << 30)
    lines = (out / "units.jsonl").read_bytes().splitlines(keepends=True)
    (out / "units.jsonl").write_bytes(lines[0] + b"\0" * 40 + b"\n" + b"".join(lines[2:]))
    summary = go_on(out)
    assert summary.damaged == 1 and len(judged) == 1
    assert figures(attrs.evolve(summary, damaged=0)) == figures(whole[1])


def test_a_campaign_goes_on_after_kill_9(whole, tmp_path):
    """Killed while it judges its second unit, the restarted command judges only the rest."""
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "normspec", *COMMAND.split(), str(out), "--jobs", "1"],
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not ((out / "units.jsonl").exists() and (out / "units.jsonl").stat().st_size):
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = (out / "units.jsonl").read_bytes()
    assert Summary.of(Store.read(out)).missing > 0
    summary = go_on(out)
    assert (out / "units.jsonl").read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert figures(attrs.evolve(summary, damaged=0)) == figures(whole[1])


def test_the_summary_is_the_same_for_two_processes(whole, tmp_path):
    """It does not depend on the process that judged a unit, nor on the order of the units."""
    assert figures(go_on(tmp_path / "two", jobs=2)) == figures(whole[1])


def test_another_request_is_refused(whole, tmp_path, monkeypatch):
    """Another profile, other targets, another version or other files of normspec: one line says what differs."""
    out, _ = whole
    with pytest.raises(WrongFolder, match="profile is quick there and standard here; name another --out"):
        go_on(out, profile="standard")
    with pytest.raises(WrongFolder, match="targets are numpy there and sound here"):
        go_on(out, "sound")
    with pytest.raises(WrongFolder, match="dtypes are float32 float64 there and float32 here"):
        go_on(out, dtypes=("float32",))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(WrongFolder, match="is not empty, and does not hold a campaign"):
        go_on(tmp_path)
    with pytest.raises(WrongFolder, match=r"cannot be used: .*; name another folder"):
        go_on(tmp_path / "notes.txt")
    with pytest.raises(WrongFolder, match="holds no campaign"):
        Store.read(tmp_path)
    (tmp_path / "request.json").write_text('{"identity": "of another program"}')
    with pytest.raises(WrongFolder, match="holds a campaign of another version"):
        Store.read(tmp_path)
    monkeypatch.setattr(identities, "versions", lambda: {"normspec": "9.9"})
    with pytest.raises(WrongFolder, match=r"version of normspec is 0\.1\.0 there and 9\.9 here"):
        go_on(out)
    monkeypatch.undo()
    monkeypatch.setattr(identities, "sources", lambda: "changed")
    with pytest.raises(WrongFolder, match="the files of normspec differ; name"):
        go_on(out)


def test_what_is_declared_of_a_target_is_of_the_campaign():
    """Another declaration, by flag or in the configuration, makes other cases: its folder is another's."""
    plain = Campaign(("numpy",), REQUEST, (), SEEDS).identity()
    declared = attrs.evolve(REQUEST, declared=Declarations(fixed={"eps": "1e-6"}))
    assert Campaign(("numpy",), declared, (), SEEDS).identity()["declared"] == {"fixed": {"eps": "1e-6"}}
    of_one = attrs.evolve(REQUEST, per_target={"numpy": {"mode": "training"}})
    assert Campaign(("numpy",), of_one, (), SEEDS).identity() != plain


def test_an_edit_in_what_a_function_imports_makes_another_campaign(tmp_path):
    """Its identity has the content of the function's file, and of each file of the project that this imports."""
    (tmp_path / "mine.py").write_text("from helping import layer_norm\n", encoding="utf-8")
    (tmp_path / "helping.py").write_text("def layer_norm(): ...\n", encoding="utf-8")
    name = f"{tmp_path / 'mine.py'}:layer_norm"

    def identity() -> dict[str, Any]:
        return Campaign((name,), REQUEST, (), range(1)).identity()

    first = identity()
    assert identity() == first
    (tmp_path / "helping.py").write_text("def layer_norm(): return 1\n", encoding="utf-8")
    assert [key for key, value in identity().items() if value != first[key]] == [f"content of {name}"]


def test_the_sound_functions_of_a_unit_are_stored_one_by_one():
    """Each by its name, so that the rest of a unit can be done later and elsewhere; the summary has them together."""
    names = ("sound:rs-one", "sound:rs-two")
    results = [
        normspec.Result(name, name, "residual", "RS-F1", "MUST", "float32", "cpu", "", Verdict.PASS, ratio, cases=3)
        for name, ratio in zip(names, (0.25, 0.5), strict=True)
    ]
    unit = Unit("residual", "float32", 0, names)
    report = normspec.Report(tuple(results), "quick", 0, seconds=4.0)
    records = records_of(unit, report, REQUEST)
    assert [(one["unit"]["target"], one["cases"], one["seconds"]) for one in records] == [(n, 3, 2.0) for n in names]
    assert without(unit, {keys_of(unit)[0]}).targets == names[1:]
    summary = Summary({"identity": {"targets": ["sound"]}, "kinds": [], "seeds": [0, 1]})
    for record in records:
        summary.add(record)
    (near,) = summary.nearness.values()
    assert ("sound", "RS-F1", "float32") in summary.nearness
    assert (near.cases, near.ratio, near.binding) == (6, 0.5, names[1])


def test_a_folder_is_one_commands_alone(whole):
    """A second command in the same folder is refused while the first is at work."""
    pytest.importorskip("fcntl")
    out, _ = whole
    asked = Store.read(out).asked
    with (
        Store.begun(out, asked),
        pytest.raises(WrongFolder, match="another command is at work"),
        Store.begun(out, asked),
    ):
        pass
    with Store.begun(out, asked):
        pass


def test_a_violation_is_kept_with_its_case_and_reproduced(tmp_path, monkeypatch, capsys):
    """The command that the summary prints finds the same violation with the same smallest case; an edit is noticed."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FAULTY)
    summary = go_on(tmp_path / "out", "mine.py:residual", seeds=range(1), op=None, dtypes=("float32",))
    assert summary.exit_status == 1 and summary.violations
    (record,) = Store.read(tmp_path / "out").records()
    kept = next(one for one in record["kept"] if one["requirement"] == "RS-F1")
    assert kept["found_on"]["operator"] == "residual" and kept["counterexample"]["inputs"]["x"]["values"]
    told = next(one for one in summary.kept.values() if one.requirement == "RS-F1")
    assert told.seeds == [0] and told.again == kept["again"]
    words = shlex.split(told.again)
    assert words[:3] == ["normspec", "check", "mine.py:residual"]
    assert main([*words[1:], "--json", "again.json"]) == 1
    capsys.readouterr()
    again = next(one for one in json.loads(Path("again.json").read_text())["results"] if one["requirement"] == "RS-F1")
    assert again["counterexample"] == kept["counterexample"]
    Path("mine.py").write_text(FAULTY.replace("1.01", "1.02"))
    with pytest.raises(WrongFolder, match=r"the content of mine\.py:residual differs"):
        go_on(tmp_path / "out", "mine.py:residual", seeds=range(1), op=None, dtypes=("float32",))


@pytest.mark.parametrize(("seconds", "words"), [(60.0, []), (7.5, ["7.5"]), (float("inf"), ["none"])])
def test_the_command_that_finds_it_again_has_the_time_limit(seconds, words):
    """What was stopped at a limit of its own need not be stopped at the usual one."""
    found = normspec.Result(
        target="mine.py:residual", binding="mine.py:residual", op="residual", requirement="RS-F1", level="MUST",
        dtype="float32", device="cpu", mode="", verdict=Verdict.ERROR, ratio=None, cases=1,
    )  # fmt: skip
    told = shlex.split(repeat_command(found, 0, attrs.evolve(REQUEST, limits=Limits(seconds=seconds))))
    assert [after for before, after in pairwise(told) if before == "--time-limit"] == words


def test_ctrl_c_keeps_what_is_done(tmp_path, whole, judged, monkeypatch):
    """The unit at work is left out, and the campaign goes on with it."""
    judge, seen = SingleProcess.judge, []

    def pressed(self, unit, listener=None):
        if judged:
            listener(Progress(1, 10, "a case", 0))
            raise KeyboardInterrupt
        return judge(self, unit, listener)

    monkeypatch.setattr(SingleProcess, "judge", pressed)
    stopped = run(("numpy",), REQUEST, SEEDS, tmp_path / "out", jobs=1, listener=seen.append)
    assert stopped.units == 1 and stopped.missing == 3 and stopped.exit_status == 3
    assert (seen[-1].done, seen[-1].total) == (1, 4)
    assert f"{stopped.cases:,} cases, 0 violations" in seen[-1].text and " left; a case" in seen[-1].text
    monkeypatch.setattr(SingleProcess, "judge", judge)
    assert figures(go_on(tmp_path / "out")) == figures(whole[1])


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize(("limit", "words"), [(0, "--out {} cannot be used"), (2000, "{} takes no further units")])
def test_a_folder_that_takes_no_more_is_one_error(tmp_path, limit, words):
    """As on a full disk: the line says which folder, and the units so far are kept."""
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from normspec.conformance.command_line.root import main; sys.exit(main(sys.argv[1:]))"
    )
    asked = ["campaign", "numpy", "--op", "residual", "--dtype", "float32", "--profile", "quick", "--seeds", "0:1"]
    out = tmp_path / "full"
    done = subprocess.run(
        [sys.executable, "-c", code, *asked, "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"normspec: {words.format(out)}: File too large")


def test_the_plot_is_drawn(whole):
    """Each requirement that is about a magnitude has its row, and the same campaign the same file."""
    pytest.importorskip("matplotlib")
    _, summary = whole
    picture = drawn(summary)
    assert picture == drawn(summary) and "<svg" in picture
    for requirement in summary.requirements():
        near = [one for (_, name, _), one in summary.nearness.items() if name == requirement]
        assert (f">{requirement}<" in picture) == any(one.ratio is not None for one in near), requirement


def test_without_matplotlib_there_is_no_plot(whole, monkeypatch):
    """It is said what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoPlot, match=r"\.\[plot\]"):
        drawn(whole[1])


def test_bins_are_closed_above():
    """A value that just fits its envelope is counted with those that nearly fill it; a larger one is separate."""
    assert bin_of(1.0) == len(EDGES) - 1 == bin_of(0.85)
    assert bin_of(1.0000001) == bin_of(float("inf")) == BINS - 1
    assert bin_of(0.0) == bin_of(EDGES[0]) == 0
    assert bin_of(EDGES[0] * 1.01) == 1


def test_one_sound_function_by_its_name(tmp_path):
    """It is a target like others; of all of them, it goes by its own name."""
    request = attrs.evolve(REQUEST, op=("residual",), dtypes=("float32",))
    summary = run(("sound:rs-plain", "sound"), request, range(1), tmp_path / "out", jobs=1)
    assert {target for target, *_ in summary.nearness} == {"sound:rs-plain", "sound"}


def test_advice_is_not_shrunk(tmp_path):
    """Its case is not kept, and looking for a smaller one takes minutes where sums vary from call to call."""
    told: list[str] = []
    request = attrs.evolve(REQUEST, op=("layer_norm",), dtypes=("float32",))
    summary = run(
        ("sound:ln-unordered-above-60",), request, range(1), tmp_path / "out", jobs=1,
        listener=lambda event: told.append(event.text),
    )  # fmt: skip
    assert summary.nearness["sound:ln-unordered-above-60", "CM-P3", "float32"].advice
    assert told and not any("shrinking" in text for text in told)
