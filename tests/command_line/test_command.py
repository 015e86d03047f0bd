"""The command itself: arguments in, exit status and one-line errors out. The engine is a stand-in here."""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
from pathlib import Path

import click
import pytest

from normspec import Verdict, check
from normspec.conformance.command_line import settings
from normspec.conformance.command_line.root import main, normspec
from normspec.conformance.faults import FAULTS
from normspec.conformance.selftest.matrix import DiagnosisInDtype, FaultRow, KillInDtype, Matrix, SoundRow
from normspec.spec import requirements


@pytest.fixture
def engine(monkeypatch, tmp_path, a_result, a_report):
    """A stand-in for the engine that records its calls and returns the test's results; no configuration is found."""
    state = types.SimpleNamespace(calls=[], answer=lambda targets: a_report(*(a_result(target=t) for t in targets)))

    def check(targets, **options):
        state.calls.append((targets, options))
        return state.answer(targets)

    monkeypatch.setitem(sys.modules, "normspec.conformance.api", types.SimpleNamespace(check=check))
    monkeypatch.setattr(settings, "missing", lambda name: () if name in ("numpy", "torch") else (name,))
    monkeypatch.chdir(tmp_path)
    return state


def test_a_conforming_target_exits_0(engine, capsys):
    """The report goes to standard output, and nothing to standard error."""
    assert main(["check", "torch"]) == 0
    out, err = capsys.readouterr()
    assert out.rstrip().endswith("CONFORMS")
    assert err == ""


def test_the_exit_status_is_that_of_the_report(engine, a_result, a_report):
    """A violated MUST is 1, an interrupted run 3, a run that exercised nothing 2."""
    engine.answer = lambda targets: a_report(a_result(verdict=Verdict.FAIL))
    assert main(["check", "torch"]) == 1
    engine.answer = lambda targets: a_report(a_result(), partial=True)
    assert main(["check", "torch"]) == 3
    engine.answer = lambda targets: a_report(a_result(verdict=Verdict.NOT_EXERCISED))
    assert main(["check", "torch"]) == 2


def test_options_reach_the_engine(engine):
    """Every option is passed on under the API's name."""
    arguments = "check f.py:g --op layer_norm --framework torch --dtype float16 --dtype float32 --device cuda"
    arguments += " --convention momentum=old --profile quick --seed 0 --forward-only --slow --mode inference"
    arguments += " --python f.py:g=venv --time-limit 2.5 --memory-limit 512MiB --jobs 3"
    arguments += " --only LN-F3,LN-G* --only CM-P3 --require deterministic --binding torch.nn.*"
    arguments += " --parameters gamma=g --layout channels-first --fixed eps=1e-6,axes=-1"
    arguments += " --cache-dir kept --cluster tcp://127.0.0.1:8786"
    assert main(arguments.split()) == 0
    ((targets, options),) = engine.calls
    assert targets == ("f.py:g",)
    assert callable(options.pop("progress"))
    assert options == {
        "op": ("layer_norm",),
        "framework": "torch",
        "dtypes": ("float16", "float32"),
        "device": "cuda",
        "conventions": {"momentum": "old"},
        "profile": "quick",
        "seed": 0,
        "forward_only": True,
        "slow": True,
        "mode": "inference",
        "only": ("LN-F3,LN-G*", "CM-P3"),
        "require": ("deterministic",),
        "binding": ("torch.nn.*",),
        "per_target": None,
        "python": {"f.py:g": "venv"},
        "time_limit": 2.5,
        "memory_limit": 512 << 20,
        "jobs": 3,
        "cache": "kept",
        "expected": (),
        "resume": False,
        "cluster": "tcp://127.0.0.1:8786",
        "replay": None,
        "reproduce": None,
        "parameters": {"gamma": "g"},
        "layout": "channels-first",
        "fixed": {"eps": "1e-6", "axes": "-1"},
        "layers": False,
    }


@pytest.mark.parametrize("command", ["check", "campaign", "compare", "identify", "selftest", "study"])
def test_names_are_divided_at_commas_in_every_command(command):
    """As those of --only: an operator, a dtype or a convention may be given beside another."""
    given = {"ops": "layer_norm,rms_norm", "dtypes": "float32,float64", "conventions": "momentum=old,storage=H2"}
    options = {one.name: one for one in normspec.get_command(None, command).params if one.multiple}
    assert "ops" in options
    for name, text in given.items():
        if name in options:
            context = click.Context(normspec)
            assert options[name].process_value(context, [text]) == tuple(text.split(","))


def test_a_report_to_replay_reaches_the_engine(engine):
    """With the options that choose among its cases."""
    assert main(["check", "f.py:g", "--replay", "report.json", "--only", "LN-F3"]) == 0
    ((_, options),) = engine.calls
    assert (options["replay"], options["only"]) == ("report.json", ("LN-F3",))


@pytest.mark.parametrize("option", ["--profile quick", "--seed 3", "--cluster tcp://127.0.0.1:8786"])
def test_an_option_that_a_replay_would_ignore_is_refused(engine, capsys, option):
    """The cases of a report are what they are, and one process judges them."""
    assert main(f"check f.py:g --replay report.json {option}".split()) == 2
    assert f"{option.split()[0]} does nothing with --replay" in capsys.readouterr().err
    assert engine.calls == []


def test_no_cache_outranks_a_folder(engine):
    """`--no-cache` keeps nothing, whatever the other options are."""
    assert main(["check", "f.py:g", "--cache-dir", "kept", "--no-cache"]) == 0
    assert engine.calls[0][1]["cache"] is False


def test_without_options_the_defaults_are_those_of_the_api(engine):
    """An option without a flag has the API's own default."""
    assert main(["check", "numpy"]) == 0
    ((_, options),) = engine.calls
    assert callable(options.pop("progress"))
    defaults = {name: parameter.default for name, parameter in inspect.signature(check).parameters.items()}
    assert options == {name: defaults[name] for name in options}


@pytest.mark.parametrize("limit", ["time", "memory"])
def test_a_limit_can_be_none(engine, limit):
    """The word "none" becomes None in the API."""
    assert main(["check", "numpy", f"--{limit}-limit", "none"]) == 0
    assert engine.calls[0][1][f"{limit}_limit"] is None


def test_without_a_target_everything_installed_is_checked(engine, counts, capsys):
    """No TARGET means all installed frameworks, in one run and one report."""
    assert main(["check"]) == 0
    ((targets, _),) = engine.calls
    assert targets == ("numpy", "torch")
    out = capsys.readouterr().out
    assert out.rstrip().endswith("\nCONFORMS")
    assert counts(out)["pass"] == 2


def test_without_a_target_one_with_an_interpreter_of_its_own_is_checked_too(engine):
    """A framework with an interpreter of its own need not be installed next to normspec."""
    assert main(["check", "--python", "mxnet=venvs/mxnet"]) == 0
    ((targets, options),) = engine.calls
    assert targets == ("numpy", "torch", "mxnet")
    assert options["python"] == {"mxnet": "venvs/mxnet"}


def test_an_interpreter_without_a_name_is_for_all_others(engine):
    """A path without a name runs every target that no other flag names; a path may contain the sign =."""
    assert main(["check", "numpy", "torch", "--python", "odd=/a", "--python", "torch=b"]) == 2
    assert main(["check", "numpy", "torch", "--python", "./odd=a", "--python", "torch=b"]) == 0
    assert engine.calls[0][1]["python"] == {"": "./odd=a", "torch": "b"}


def test_an_interrupt_before_any_result_is_one_line(engine, capsys):
    """Ctrl-C while nothing is established prints no traceback and exits 3."""

    def interrupt(targets):
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


@pytest.mark.parametrize("name", ["missing/report.json", ".", "/proc/report.json"])
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
        ("check torch --time-limit 0", "none"),
        ("check torch --time-limit soon", "none"),
        ("check torch --time-limit nan", "none"),
        ("check torch --memory-limit 8", "8GiB"),
        ("check torch --memory-limit 8G", "8GiB"),
        ("check torch --memory-limit lots", "512MiB"),
        ("check torch --python", "--python"),
        ("check torch --python torch=", "torch=PATH"),
        ("check torch --python mxnt=venv", "'mxnet'"),
        ("check torch --python numpy=venv", "not checked"),
        ("check torch --python a --python b", "twice"),
        ("check --python venv", "name the targets"),
        ("nonesuch", "nonesuch"),
        ("explain LN-F99", "LN-F"),
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
    assert "\n  ln-eps-on-std  Divides by sqrt(var) + eps.\n" in out


def test_explain_prints_every_fault_in_eighty_columns(capsys, monkeypatch):
    """Each fault of a requirement is listed: in full, or on the common page once with its operators' prefixes."""
    monkeypatch.setattr("normspec.conformance.reporting.explained._print_costs", lambda *_: None)  # half a minute
    for identifier in requirements():
        assert main(["explain", identifier]) == 0
        shown = capsys.readouterr().out.partition("\nExcludes:\n")[2].partition("\n\n")[0]
        assert max(map(len, shown.splitlines())) <= 80
        words = " ".join(shown.split())
        for fault in FAULTS:
            if fault.requirement == identifier:
                prefix, _, name = fault.name.partition("-")
                operators = rf" \([a-z, ]*\b{prefix}\b[a-z, ]*\)" if identifier.startswith("CM-") else ""
                assert re.search(rf"{name} {re.escape(fault.summary)}{operators}", words), fault.name


def test_selftest_prints_the_matrix_and_exits_as_it_says(monkeypatch, capsys):
    """The options reach the self-test, and a fault that survives is exit 1."""
    calls = []

    def run(**options):
        calls.append(options)
        survivor = FaultRow("ln-unbiased", "layer_norm", "LN-F2", (), ("float32",), ("float32",))
        return Matrix((survivor,), (SoundRow("welford", "layer_norm"),), "quick", 3)

    monkeypatch.setitem(sys.modules, "normspec.conformance.selftest.selftest", types.SimpleNamespace(selftest=run))
    assert main(["selftest", "--op", "layer_norm", "--dtype", "float32", "--seed", "3", "--jobs", "1"]) == 1
    assert callable(calls[0].pop("progress"))
    wanted = {"op": ("layer_norm",), "dtypes": ("float32",), "profile": "quick", "seed": 3, "jobs": 1}
    assert calls == [{**wanted, "others": False, "table": False}]
    assert "SURVIVED LN-F2 in float32" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["kills.md", "kills.json"])
def test_selftest_writes_the_table_of_kills(name, monkeypatch, tmp_path):
    """In Markdown or in JSON, as the file's name ends; a file that cannot be written is an error before the run."""
    row = FaultRow(
        "ln-unbiased", "layer_norm", "LN-F2", ("LN-F2",), ("float32",),
        seen=(KillInDtype("float16", unseen="LN-F2 is not about it"), KillInDtype("float32", 7)),
        named=(
            DiagnosisInDtype("float16", ((),), ("LN-F2",), 3),
            DiagnosisInDtype("float32", (("ln-unbiased", "ln-other"),), ("LN-F2",), 3),
            DiagnosisInDtype("float64", (("ln-unbiased", "ln-other"),), ("LN-F2",), 3),
        ),
    )  # fmt: skip
    sound = SoundRow("ln-welford", "layer_norm", ratio=0.5, largest_in=("LN-F1", "float32"))
    matrix = Matrix((row,), (sound,), "quick", 0)
    made = types.SimpleNamespace(selftest=lambda **options: matrix if options["table"] else None)
    monkeypatch.setitem(sys.modules, "normspec.conformance.selftest.selftest", made)
    assert main(["selftest", "--table", str(tmp_path / "other.md"), "--table", str(tmp_path / name)]) == 0
    assert (tmp_path / "other.md").exists()
    text = (tmp_path / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        (fault,) = json.loads(text)["faults"]
        assert fault["seen"][1] == {"dtype": "float32", "cases": 7, "unseen": ""}
        assert fault["named"][1]["names"] == [["ln-unbiased", "ln-other"]]
    else:
        assert "\n# The kill table of layer_norm\n" in text
        assert "| ln-unbiased | LN-F2 | a | 7 | in a group: ln-other; described in float16 | LN-F2 |" in text
        assert "| by its own name alone | 0 (0.0 %) | 0 (0.0 %) | 0 (0.0 %) |" in text
        assert "- a: LN-F2 is not about it" in text
        assert "| ln-welford | 0.5 | LN-F1 in float32 |  |" in text
    assert main(["selftest", "--table", str(tmp_path / "nowhere" / name)]) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_selftest_prints_the_matrix_even_if_the_table_cannot_be_written(monkeypatch, capsys):
    """A run of many minutes is not lost, and the status says that a file is missing."""
    row = FaultRow("ln-unbiased", "layer_norm", "LN-F2", ("LN-F2",), ("float32",))
    matrix = Matrix((row,), (SoundRow("ln-welford", "layer_norm"),), "quick", 0)
    made = types.SimpleNamespace(selftest=lambda **options: matrix)
    monkeypatch.setitem(sys.modules, "normspec.conformance.selftest.selftest", made)
    assert main(["selftest", "--table", "/dev/full"]) == 2
    printed = capsys.readouterr()
    assert "PROVEN" in printed.out.upper()
    assert printed.err == "normspec: --table /dev/full could not be written: No space left on device\n"


def test_help_exits_0(capsys):
    """Every sub-command explains itself."""
    for arguments in (["--help"], ["check", "--help"], ["selftest", "-h"], ["list", "-h"], ["explain", "-h"]):
        assert main(arguments) == 0
        assert "Usage: normspec" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("chek", "did you mean `normspec check`?"),
        ("mine.py:layer_norm", "did you mean `normspec check mine.py:layer_norm`?"),
        ("torch", "did you mean `normspec check torch`?"),
        ("qqqq", "No such command 'qqqq' (see"),
    ],
)
def test_a_word_that_is_no_command_is_answered(word, meant, capsys):
    """A target without `check`, and a command that is spelled nearly so, are what somebody meant."""
    assert main([word]) == 2
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "dtype"), [("fp16", "float16"), ("half", "float16"), ("bf16", "bfloat16"), ("fp32", "float32")]
)
def test_a_dtype_by_another_name_is_answered(word, dtype, capsys):
    """Frameworks have short names, which are not those of reports."""
    assert main(["check", "numpy", "--dtype", word]) == 2
    assert f"did you mean '{dtype}'" in capsys.readouterr().err


def test_help_fits_a_narrow_terminal(capsys, monkeypatch):
    """In 80 columns no summary of a sub-command is cut off."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.parametrize("name", ["check", "campaign", "compare", "identify"])
def test_help_is_in_sections(name, capsys):
    """Every option of a command that has many stands under a heading, and once."""
    assert main([name, "--help"]) == 0
    found = capsys.readouterr().out
    sections, other = found.partition("What is judged:")[2].split("Other options:")
    first = re.findall(r"^  (-[^ ,]+)", other, re.MULTILINE)
    assert set(first) <= {"--out", "--summary", "--brief", "-h"}
    for option in ("--op", "--device", "--python"):
        assert len(re.findall(rf"^  {option} ", sections, re.MULTILINE)) == 1


@pytest.mark.parametrize("error", [ZeroDivisionError("ours"), FileNotFoundError(2, "ours"), SystemExit(1)])
def test_an_error_that_nothing_foresaw_is_ours(monkeypatch, capsys, error):
    """Its traceback is printed and the status is 3: Python's own, 1, would say that a MUST is violated."""

    def failing(**_):
        raise error

    monkeypatch.setattr(normspec, "main", failing)
    assert main(["list"]) == 3
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.splitlines()[-1].startswith(f"normspec: a defect of normspec: {type(error).__name__}")
    assert told.endswith("; please report it with the lines above\n")
