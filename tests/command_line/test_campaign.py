"""`normspec campaign`: its options, what it prints and writes, and how it ends."""

from __future__ import annotations

import json
import sys

import pytest

from normspec import Verdict
from normspec.conformance.campaign import running, store
from normspec.conformance.campaign.campaign import SCHEMA
from normspec.conformance.campaign.record import records_of, repeat_command
from normspec.conformance.campaign.summary import Summary
from normspec.conformance.command_line.root import main, normspec
from normspec.conformance.requests.request import Request
from normspec.conformance.results.ratios import bin_of
from normspec.conformance.running.unit import Unit

ASKED = {
    "identity": {
        "schema": SCHEMA, "targets": ["torch"], "op": ["layer_norm"], "dtypes": None, "device": "cpu",
        "conventions": {"momentum": "old"}, "profile": "thorough", "framework": None, "pythons": {"torch": "python3"},
        "version of normspec": "0.1.0",
        "version of torch": "torch 2.13.0",
    },
    "kinds": [["torch", "layer_norm", "float32"]],
    "seeds": [0, 2],
}  # fmt: skip
REQUEST = Request((), ("layer_norm",), None, None, "cpu", {"momentum": "old"}, "thorough", 0)


@pytest.fixture
def summary(a_report, a_result):
    """A function that makes a campaign's summary with this many units done, from the results in each."""

    def make(*results, units=2):
        found = Summary(ASKED)
        for seed in range(units):
            unit = Unit("layer_norm", "float32", seed, ("torch",))
            for record in records_of(unit, a_report(*results), REQUEST):
                found.add(record)
        return found

    return make


@pytest.fixture
def commanded(monkeypatch, tmp_path):
    """A function that runs the command with a stand-in for the work; it returns the status and the stand-in's call."""
    calls = []

    def command(found, *arguments):
        def run(*given, **options):
            calls.append((given, options))
            return found

        monkeypatch.setattr(running, "run", run)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "out").mkdir(exist_ok=True)
        return main(["campaign", *(arguments or ("torch", "--seeds", "0:2", "--out", "out"))]), calls

    return command


def test_options_reach_the_work(commanded, summary, a_result):
    """Every option is passed on; those about targets and seeds are separate from those about each unit."""
    arguments = "torch torch sound --seeds 5:7 --out out --op layer_norm --dtype float16 --convention momentum=old"
    arguments += (
        " --profile quick --jobs 2 --time-limit none --device cuda --python torch=venv --cluster tcp://one:8786"
    )
    _, (((asked, request, seeds, out), options),) = commanded(summary(a_result()), *arguments.split())
    assert asked == ("torch", "sound") and seeds == range(5, 7) and str(out) == "out"
    assert callable(options.pop("listener"))
    assert options == {"jobs": 2, "cluster": "tcp://one:8786"}
    assert (request.op, request.dtypes, request.device) == (("layer_norm",), ("float16",), "cuda")
    assert (request.conventions, request.profile, request.pythons) == ({"momentum": "old"}, "quick", {"torch": "venv"})
    assert request.limits.seconds == float("inf") and request.limits.memory is None


def test_what_check_is_told_of_a_target_a_campaign_is_told_too(commanded, summary, a_result, tmp_path):
    """By flags and by the configuration; and only a check has options about what alone is judged."""
    (tmp_path / "mine.py").write_text("def batch_norm(x): pass")
    (tmp_path / "own.toml").write_text(
        '[tool.normspec]\nmode = "training"\ndtypes = ["float32"]\nconventions = { momentum = "old" }\n'
        '[tool.normspec.target."mine.py:batch_norm"]\nfixed = { eps = 1e-3 }\n'
    )
    arguments = "mine.py:batch_norm --seeds 0:1 --out out --config own.toml --mode inference --forward-only"
    arguments += " --parameters gamma=g --layout channels-first --fixed momentum=0.1 --memory-limit 512MiB"
    _, (((_, request, *_), _),) = commanded(summary(a_result()), *arguments.split())
    assert (request.mode, request.forward_only, request.dtypes) == ("inference", True, ("float32",))
    declared = request.declared_of("mine.py:batch_norm")
    assert (declared.parameters, declared.layout) == ({"gamma": "g"}, "channels-first")
    assert declared.fixed == {"eps": "0.001", "momentum": "0.1"}
    assert request.limits.memory == 512 << 20
    found = a_result(target="mine.py:batch_norm", op="batch_norm", verdict=Verdict.FAIL)
    told = repeat_command(found, 3, request)
    for words in ("--mode inference", "--forward-only", "--parameters gamma=g", "--layout channels-first"):
        assert words in told
    assert "--fixed eps=0.001,momentum=0.1" in told and "--convention momentum=old" in told
    assert "--memory-limit 512MiB" in told
    options = {name: {one.name for one in normspec.get_command(None, name).params} for name in ("check", "campaign")}
    assert options["check"] - options["campaign"] == {
        "seed", "only", "require", "binding", "slow", "layers", "cache_dir", "no_cache", "resume", "replay",
        "reproduce", "json_file", "html_file", "junit_file", "markdown_file", "against", "write_expected", "form",
    }  # fmt: skip


def test_a_campaign_that_was_stopped_at_once_says_so(commanded, summary, capsys, tmp_path):
    """No empty table, no word about a plot; what is to be done, and how it goes on."""
    status, _ = commanded(summary(units=0))
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    assert status == 3
    assert words.endswith("NOTHING WAS JUDGED YET: 2 units not done; the same command begins with them.")
    assert err == "" and "nearest" not in out and not (tmp_path / "out" / "ratios.svg").exists()


def test_a_violation_and_a_version_are_told_once_and_in_their_columns(commanded, summary, a_result, capsys):
    """A line goes on below its first word; no colon waits for a reason that is empty; no version stands twice."""
    found = summary(
        a_result(verdict=Verdict.FAIL, ratio=58.0, reason="a long reason " * 6),
        a_result(verdict=Verdict.FAIL, requirement="LN-F2"),
    )
    identity = {**ASKED["identity"], "targets": ["torch", "f.py:f"], "version of f.py:f": "torch 2.13.0"}
    found.asked = {**ASKED, "identity": identity}
    assert commanded(found)[0] == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("✗ LN-F1"))
    assert "58 envelopes: a long" in lines[at] and lines[at + 1].startswith("  ")
    assert all(not line.rstrip().endswith(":") for line in lines if line.startswith("✗ "))
    assert [line.split("normspec ")[1] for line in lines if line.startswith("profile ")] == ["0.1.0, torch 2.13.0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("torch --out out", "--seeds and --out"),
        ("--seeds 0:2 --out out", "at least one target"),
        ("torch --seeds 2:2 --out out", "write FIRST:LAST, such as 0:1000"),
        ("torch --seeds 7 --out out", "write FIRST:LAST"),
        ("torch --summary out", "give no targets"),
        ("--summary nowhere", "nowhere holds no campaign"),
        ("torch --seeds 0:2 --out out --profile deep", "unknown profile 'deep'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(capsys, arguments, words):
    """Exit status 2, and nothing is written."""
    assert main(["campaign", *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1


def test_a_campaign_without_violation_exits_0(commanded, summary, a_result, capsys):
    """The table has the largest ratio by dtype and where it was; the folder gets the summary in three forms."""
    status, _ = commanded(summary(a_result(ratios={bin_of(0.42): 12})))
    out = capsys.readouterr().out
    assert status == 0
    assert next(line.split() for line in out.splitlines() if "LN-F1" in line)[:3] == ["LN-F1", "24", "0.42"]
    assert "torch.nn.LayerNorm, seed 0" in out and "NO VIOLATION in 24 cases; the largest ratio is 0.42" in out


def test_the_folder_gets_the_summary_in_three_forms(commanded, summary, a_result, tmp_path):
    """JSON for programs, tables for a page with the command that makes them, and the plot."""
    commanded(summary(a_result(ratios={bin_of(0.42): 12})))
    document = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert document["cases"] == 24 and document["exit_status"] == 0
    (near,) = document["nearness"]
    assert near["ratio"] == 0.42 and sum(near["histogram"]) == 24 and near["histogram"][bin_of(0.42)] == 24
    page = (tmp_path / "out" / "summary.md").read_text()
    assert "| LN-F1 | the formula, over exactly the given axes | 24 | 0.42 |" in page
    command = "normspec campaign torch --seeds 0:2 --profile thorough --op layer_norm --convention momentum=old"
    command += " --python torch=python3"
    assert page.splitlines()[0] == f"    $ {command} --out DIR"


def test_without_matplotlib_the_rest_works(commanded, summary, a_result, tmp_path, monkeypatch, capsys):
    """It is said what to install, and the status is that of the campaign."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert commanded(summary(a_result()))[0] == 0
    assert (
        "matplotlib is not installed: in a clone of normspec, python -m pip install '.[plot]'"
        in capsys.readouterr().err
    )
    assert {one.name for one in (tmp_path / "out").iterdir()} == {"summary.json", "summary.md"}


def test_a_folder_that_takes_no_files_is_told_under_the_summary(commanded, summary, a_result, monkeypatch, capsys):
    """What was found is printed all the same, and the status is that of a file that was not written."""

    def refused(path, text):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "replace", refused)
    assert commanded(summary(a_result()))[0] == 2
    printed = capsys.readouterr()
    assert "NO VIOLATION" in printed.out and printed.err == "normspec: out takes no summary: Permission denied\n"


def test_a_violation_exits_1_with_the_command_that_reproduces_it(commanded, summary, a_result, capsys, counterexample):
    """It is listed once for all seeds that show it, with what is wrong."""
    broken = a_result(verdict=Verdict.FAIL, ratio=58.0, reason="x strided", counterexample=counterexample)
    assert commanded(summary(broken))[0] == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "✗ LN-F1 torch.nn.LayerNorm float32, seed 0, 1, 58 envelopes: x strided" in out
    assert (
        "normspec check torch --op layer_norm --dtype float32 --profile thorough --seed 0 --convention momentum=old"
        in out
    )
    assert "VIOLATED: 1 requirement, LN-F1." in out


def test_what_is_not_done_or_not_judged_exits_3(commanded, summary, a_result, capsys):
    """A campaign that was stopped says how to go on, and an error is no pass."""
    assert commanded(summary(a_result(), units=1))[0] == 3
    assert "Not done: 1 unit; the same command continues." in " ".join(capsys.readouterr().out.split())
    assert commanded(summary(a_result(verdict=Verdict.ERROR, cases=0, ratio=None, reason="it raised")))[0] == 3
    assert "it raised" in capsys.readouterr().out
    assert commanded(summary(a_result(verdict=Verdict.NOT_EXERCISED, cases=0, ratio=None)))[0] == 2


def test_advice_is_counted_and_accuses_nobody(commanded, summary, a_result, capsys):
    """A violated SHOULD is in the table, but not among the violations."""
    assert (
        commanded(
            summary(a_result(), a_result(requirement="LN-R1", level="SHOULD", verdict=Verdict.ADVICE, ratio=3e5))
        )[0]
        == 0
    )
    out = capsys.readouterr().out
    assert "3e5" in out and "advice      2" in out and "largest ratio is 0.42" in out


@pytest.mark.parametrize(("damaged", "words"), [(1, "1 record, cut off"), (1200, "1,200 records, cut off")])
def test_damaged_records_are_counted_in_words(commanded, summary, a_result, capsys, damaged, words):
    """One is not 1 records."""
    found = summary(a_result())
    found.damaged = damaged
    commanded(found, "torch", "--seeds", "0:2", "--out", "out")
    assert f"{words} or damaged: what is lost by that is done again" in " ".join(capsys.readouterr().out.split())
