"""The command itself: arguments in, exit status and one-line errors out. The engine is a stand-in here."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest

from normspec import Verdict
from normspec.adapters import frameworks
from normspec.adapters.errors import UnknownDtype
from normspec.conformance.command_line.root import main
from normspec.conformance.matrix import FaultRow, Matrix, SoundRow
from normspec.spec import requirements


@pytest.fixture
def engine(monkeypatch, a_result, a_report):
    """A stand-in for the engine and the targets that records its calls and returns what the test says."""
    state = types.SimpleNamespace(calls=[], resolved=[], answer=lambda target: a_report(a_result(target=target)))

    def check(target, **options):
        state.calls.append((target, options))
        return state.answer(target)

    def resolve(target, *, op, framework):
        if target == "nonesuch":
            raise UnknownDtype("nonesuch is unknown")
        state.resolved.append(target)

    api = types.SimpleNamespace(check=check)
    targets = types.SimpleNamespace(resolve=resolve, installed=lambda: ("numpy", "torch"))
    monkeypatch.setitem(sys.modules, "normspec.conformance.api", api)
    monkeypatch.setitem(sys.modules, "normspec.adapters.targets", targets)
    return state


def test_a_conforming_target_exits_0(engine, capsys):
    """The report goes to standard output, and nothing to standard error."""
    assert main(["check", "torch"]) == 0
    out, err = capsys.readouterr()
    assert out.rstrip().endswith("CONFORMS")
    assert err == ""


def test_the_exit_status_is_that_of_the_report(engine, a_result, a_report):
    """A violated MUST is 1, an interrupted run 3, a run that exercised nothing 2."""
    engine.answer = lambda target: a_report(a_result(verdict=Verdict.FAIL))
    assert main(["check", "torch"]) == 1
    engine.answer = lambda target: a_report(a_result(), partial=True)
    assert main(["check", "torch"]) == 3
    engine.answer = lambda target: a_report(a_result(verdict=Verdict.NOT_EXERCISED))
    assert main(["check", "torch"]) == 2


def test_options_reach_the_engine(engine):
    """Every option is handed on as the API names it."""
    arguments = "check f.py:g --op layer_norm --framework torch --dtype float16 --dtype float32 --device cuda"
    arguments += " --convention momentum=old --profile quick --seed 0 --forward-only"
    assert main(arguments.split()) == 0
    ((target, options),) = engine.calls
    assert target == "f.py:g"
    assert options.pop("progress") is None
    assert options == {
        "op": "layer_norm",
        "framework": "torch",
        "dtypes": ("float16", "float32"),
        "device": "cuda",
        "conventions": {"momentum": "old"},
        "profile": "quick",
        "seed": 0,
        "forward_only": True,
    }


def test_without_a_target_everything_installed_is_checked(engine, counts, capsys):
    """No TARGET means all installed frameworks, in one report, from one seed."""
    assert main(["check"]) == 0
    assert [target for target, _ in engine.calls] == ["numpy", "torch"]
    assert [options["seed"] for _, options in engine.calls] == [None, 7]
    out = capsys.readouterr().out
    assert out.count("CONFORMS") == 1
    assert counts(out)["pass"] == 2


def test_targets_are_resolved_before_the_first_is_checked(engine, capsys):
    """A mistake in the last target costs no run."""
    assert main(["check", "torch", "nonesuch"]) == 2
    assert engine.calls == []
    assert capsys.readouterr().err == "normspec: nonesuch is unknown\n"


def test_an_interrupt_stops_the_targets_that_follow(engine, a_result, a_report, capsys):
    """After a partial report the next target is not begun."""
    engine.answer = lambda target: a_report(a_result(), partial=True)
    assert main(["check", "numpy", "torch"]) == 3
    assert len(engine.calls) == 1
    assert "PARTIAL" in capsys.readouterr().out


def test_an_interrupt_before_any_result_is_one_line(engine, capsys):
    """Ctrl-C while nothing is established prints no traceback and exits 3."""

    def interrupt(target):
        raise KeyboardInterrupt

    engine.answer = interrupt
    assert main(["check", "numpy"]) == 3
    assert capsys.readouterr().err.strip() == "normspec: interrupted before anything was established"


def test_json_is_written_beside_the_table(engine, tmp_path, capsys):
    """The file holds the report, and the table is still printed."""
    file = tmp_path / "report.json"
    assert main(["check", "torch", "--json", str(file)]) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["conforms"] is True
    assert "CONFORMS" in capsys.readouterr().out


def test_json_on_standard_output_is_alone_there(engine, capsys):
    """With `--json -` another program can read standard output; the table moves to standard error."""
    assert main(["check", "torch", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["conforms"] is True
    assert "CONFORMS" in err


@pytest.mark.parametrize("name", ["missing/report.json", "."])
def test_an_unwritable_file_is_told_before_the_run(engine, tmp_path, monkeypatch, capsys, name):
    """Where the JSON cannot be written nothing is checked."""
    monkeypatch.chdir(tmp_path)
    assert main(["check", "torch", "--json", name]) == 2
    assert engine.calls == []
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("check torch --convention momentum", "KEY=VALUE"),
        ("check torch --convention momentum=sideways", "old"),
        ("check torch --seed -1", "--seed"),
        ("check torch --seed x", "--seed"),
        ("check torch --nonesuch", "--nonesuch"),
        ("nonesuch", "nonesuch"),
        ("explain LN-F99", "LN-F"),
        ("explain", "--help"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(engine, capsys, arguments, word):
    """Exit 2, nothing checked, one line on standard error, nothing on standard output."""
    assert main(arguments.split()) == 2
    assert engine.calls == []
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("normspec: ")
    assert err.count("\n") == 1
    assert word in err


def test_explain_prints_the_requirement(capsys):
    """The id may be written in lower case; sentence, level and formula are printed."""
    assert main(["explain", "ln-f3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("LN-F3  MUST")
    assert "Why: " in out
    assert all(fault in out for fault in requirements()["LN-F3"].excludes)


def test_selftest_prints_the_matrix_and_exits_as_it_says(monkeypatch, capsys):
    """The options reach the self-test, and a fault that survives is exit 1."""
    calls = []

    def run(**options):
        calls.append(options)
        survivor = FaultRow("ln-unbiased", "layer_norm", "LN-F2", ())
        return Matrix((survivor,), (SoundRow("welford", "layer_norm"),), "quick", 3)

    monkeypatch.setitem(sys.modules, "normspec.conformance.selftest", types.SimpleNamespace(selftest=run))
    assert main(["selftest", "--op", "layer_norm", "--dtype", "float32", "--seed", "3"]) == 1
    assert calls == [{"op": "layer_norm", "dtypes": ("float32",), "profile": "quick", "seed": 3, "progress": None}]
    assert "SURVIVED LN-F2" in capsys.readouterr().out


def test_list_names_the_targets_and_how_to_get_those_missing(monkeypatch, capsys):
    """What is installed has its version; what is not has the command that installs it."""
    monkeypatch.setattr(frameworks, "installed", lambda: ("numpy",))
    assert main(["list"]) == 0
    numpy, torch = capsys.readouterr().out.splitlines()
    assert numpy.split() == ["numpy", np.__version__]
    assert torch.endswith("not installed: python -m pip install 'normspec[torch]'")


def test_help_exits_0(capsys):
    """Every sub-command explains itself."""
    for arguments in (["--help"], ["check", "--help"], ["selftest", "-h"], ["list", "-h"], ["explain", "-h"]):
        assert main(arguments) == 0
        assert "Usage: normspec" in capsys.readouterr().out
