"""`[tool.normspec]`: found, read, overridden by flags; and one line about each mistake in it."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from normspec.adapters.remote.launching import command_of
from normspec.conformance.command_line import settings
from normspec.conformance.command_line.root import main
from normspec.conformance.expected.entry import Expected
from normspec.conformance.requests.configuration import KEYS, WrongConfiguration, configuration

EVERYTHING = """
[tool.normspec]
targets = ["numpy", "mine.py:layer_norm", "package.module:batch_norm"]
ops = ["layer_norm", "batch_norm"]
profile = "quick"
dtypes = ["float32", "float64"]
device = "cuda:1"
seed = 7
mode = "inference"
only = ["gradients", "LN-F3"]
require = ["deterministic"]
binding = ["torch.nn.functional.*"]
time-limit = 2.5
memory-limit = "512MiB"
jobs = 3
cluster = "tcp://127.0.0.1:8786"
cache-dir = "kept"
conventions = { momentum = "old", subnormals = "flushed" }

[tool.normspec.interpreters]
mxnet = "venvs/mxnet"
"keras[torch]" = "/opt/keras/bin/python"
numpy = "python3.10"
"mine.py:layer_norm" = "../other"

[tool.normspec.target."mine.py:fused"]
op = "batch_norm"
framework = "torch"
conventions = { momentum = "old" }
mode = "training"
forward-only = true
parameters = { gamma = "g" }
layout = "channels-first"
fixed = { eps = 1e-6, beta = "none" }

[[tool.normspec.expected]]
requirement = "LN-F3"
target = "torch"
dtypes = ["float16"]
reason = "reported upstream"
until = "99.0"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project's folder, in which the command runs."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "mine.py").write_text("def fused(): ...\n", encoding="utf-8")  # a table is about what there is
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def write(project):
    """A function that writes the project's pyproject.toml."""

    def write(text: str) -> Path:
        file = project / "pyproject.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


@pytest.fixture
def calls(monkeypatch, a_result, a_report):
    """The calls of the engine: (targets, options) of each run; only numpy and torch are installed."""
    found = []

    def check(targets, **options):
        found.append((targets, options))
        return a_report(a_result())

    monkeypatch.setitem(sys.modules, "normspec.conformance.api", types.SimpleNamespace(check=check))
    monkeypatch.setattr(settings, "missing", lambda name: () if name in ("numpy", "torch") else (name,))
    return found


def test_every_key_is_read(write, project):
    """Each key has a value of the kind that the API takes, and each is tried here."""
    write(EVERYTHING)
    found = configuration()
    assert found.file == "pyproject.toml"
    assert found.values == {
        "targets": ("numpy", "mine.py:layer_norm", "package.module:batch_norm"),
        "ops": ("layer_norm", "batch_norm"),
        "profile": "quick",
        "dtypes": ("float32", "float64"),
        "device": "cuda:1",
        "seed": 7,
        "mode": "inference",
        "only": ("gradients", "LN-F3"),
        "require": ("deterministic",),
        "binding": ("torch.nn.functional.*",),
        "time-limit": 2.5,
        "memory-limit": 512 << 20,
        "jobs": 3,
        "cluster": "tcp://127.0.0.1:8786",
        "cache-dir": str(project / "kept"),
        "conventions": {"momentum": "old", "subnormals": "flushed"},
        "interpreters": {
            "mxnet": str(project / "venvs/mxnet"),
            "keras[torch]": "/opt/keras/bin/python",
            "numpy": "python3.10",
            "mine.py:layer_norm": str(project.parent / "other"),
        },
        "target": {
            "mine.py:fused": {
                "op": "batch_norm",
                "framework": "torch",
                "conventions": {"momentum": "old"},
                "mode": "training",
                "forward_only": True,
                "parameters": {"gamma": "g"},
                "layout": "channels-first",
                "fixed": {"eps": "1e-06", "beta": "none"},
            }
        },
        "expected": (Expected("LN-F3", "reported upstream", target="torch", dtypes=("float16",), until="99.0"),),
    }
    assert set(found.values) == set(KEYS)


def test_the_nearest_file_upwards_that_has_the_table_counts(write, project, monkeypatch):
    """A pyproject.toml without the table is passed over, and so is a broken one that is about something else."""
    write("[tool.normspec]\nseed = 1\n")
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    (project / "a" / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    (inner / "pyproject.toml").write_text("[broken\n", encoding="utf-8")
    monkeypatch.chdir(inner)
    assert configuration().values == {"seed": 1}
    assert configuration().file == "../../pyproject.toml"


def test_without_the_table_nothing_is_configured(write):
    """A project that says nothing of normspec configures nothing."""
    write("[project]\nname = 'x'\n")
    assert configuration().values == {}


def test_files_are_relative_to_the_file_that_names_them(write, project, monkeypatch):
    """From another folder the same targets and interpreters are meant."""
    write('[tool.normspec]\ntargets = ["mine.py:f", "numpy"]\ninterpreters = { "mine.py:f" = "venv/bin/python" }\n')
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    values = configuration().values
    assert values["targets"] == ("../mine.py:f", "numpy")
    assert values["interpreters"] == {"../mine.py:f": str(project / "venv/bin/python")}


def test_a_command_is_relative_to_the_file_that_names_it(write, project, monkeypatch):
    """A path of a program is, a bare word is looked up; what is handed to it stays what it was."""
    commands = ["exec:./worker '{\"a\": [1, 2]}' ./x", "exec:julia kernel.jl", "exec:/opt/worker", "exec:./worker"]
    write(f"[tool.normspec]\ntargets = {json.dumps(commands)}\n[tool.normspec.target.'exec:./worker']\nop = 'mhc'\n")
    values = configuration().values
    assert values["targets"] == tuple(commands), "in the file's own folder they are those of the command line"
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    values = configuration().values
    assert [command_of(one) for one in values["targets"]] == [
        ("../worker", '{"a": [1, 2]}', "./x"), ("julia", "kernel.jl"), ("/opt/worker",), ("../worker",),
    ]  # fmt: skip
    assert list(values["target"]) == ["exec:../worker"]
    beside = project / "inner" / "deeper"
    beside.mkdir()
    (beside / "normspec.toml").write_text("targets = ['exec:../worker']\n")
    assert configuration("deeper/normspec.toml").values["targets"] == ("exec:./worker",)


def test_a_folder_beside_the_file_is_no_command(write, project):
    """A bare word is a folder next to the file if there is one, and otherwise a command to look up."""
    (project / "venv").mkdir()
    write('[tool.normspec.interpreters]\nmxnet = "venv"\nnumpy = "python3"\n')
    assert configuration().values["interpreters"] == {"mxnet": str(project / "venv"), "numpy": "python3"}


def test_keras_is_the_backend_that_it_would_take(write, monkeypatch):
    """`keras` is the target that `normspec check keras` checks."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    write('[tool.normspec]\ntargets = ["keras"]\ninterpreters = { keras = "/venv" }\n')
    assert configuration().values == {"targets": ("keras[jax]",), "interpreters": {"keras[jax]": "/venv"}}


def test_limits_can_be_none(write):
    """The word "none" stands for no limit; memory may be a number of bytes."""
    write('[tool.normspec]\ntime-limit = "none"\nmemory-limit = "none"\n')
    assert configuration().values == {"time-limit": None, "memory-limit": None}
    write("[tool.normspec]\nmemory-limit = 1_000_000_000\n")
    assert configuration().values == {"memory-limit": 10**9}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("target = ['numpy']", ["target: a table", "did you mean 'targets'?"]),
        ("targts = ['numpy']", ["'targts'", "did you mean 'targets'?", "interpreters"]),
        ("time_limit = 3", ["'time_limit'", "did you mean 'time-limit'?"]),
        ("targets = 'numpy'", ["targets:", "list", "'numpy'"]),
        ("targets = []", ["targets:", "list"]),
        ("targets = [3]", ["targets:", "list"]),
        ("targets = ['nmpy']", ["targets:", "did you mean 'numpy'?"]),
        ("targets = ['ours']", ["targets:", "FILE.py:NAME"]),
        ("targets = ['exec:']", ["targets:", "names no command"]),
        ("targets = ['~nosuchuser/mine.py:f']", ["targets: ~nosuchuser/mine.py names no user's home"]),
        ("targets = ['~nosuchuser/mine.py']", ["targets: ~nosuchuser/mine.py names no user's home"]),
        ("ops = ['layernorm']", ["ops:", "did you mean 'layer_norm'?"]),
        ("ops = 'layer_norm'", ["ops:", "list"]),
        ("profile = 'fast'", ["profile:", "'fast'", "standard"]),
        ("profile = 1", ["profile:", "1"]),
        ("dtypes = ['float3']", ["dtypes:", "did you mean 'float32'?"]),
        ("device = 0", ["device:", "0"]),
        ("seed = -1", ["seed:", "-1"]),
        ("seed = true", ["seed:", "True"]),
        ("jobs = 0", ["jobs:", "from 1 on"]),
        ("cache-dir = 1", ["cache-dir:", "path of a folder"]),
        ("cache-dir = '~nosuchuser/kept'", ["cache-dir: ~nosuchuser/kept names no user's home"]),
        ("interpreters = { mxnet = '~nosuchuser/venv' }", ["interpreters: ~nosuchuser/venv names no user's home"]),
        ("cluster = 8786", ["cluster:", "the address of a Dask scheduler"]),
        ("jobs = '2'", ["jobs:", "from 1 on"]),
        ('mode = "train"', ["mode:", "did you mean 'training'"]),
        ('only = "gradients"', ["only:", "list"]),
        ('only = ["gradient"]', ["only: no requirement", "did you mean gradients?"]),
        ('require = ["determinism"]', ["require: no requirement", "did you mean deterministic?"]),
        ("binding = [3]", ["binding:", "list"]),
        ("time-limit = 0", ["time-limit:", "none"]),
        ("time-limit = true", ["time-limit:", "none"]),
        ("time-limit = inf", ["time-limit:", "none"]),
        ("time-limit = [60]", ["time-limit:", "none"]),
        ("memory-limit = 8", ["memory-limit:", "8GiB"]),
        ("memory-limit = '8 gigs'", ["memory-limit:", "8GiB"]),
        ("memory-limit = 8.5", ["memory-limit:", "8GiB"]),
        ("conventions = 'momentum=old'", ["conventions:", "table"]),
        ("conventions = { momentun = 'old' }", ["conventions:", "did you mean 'momentum'?"]),
        ("conventions = { momentum = 3 }", ["conventions:", "momentum", "old"]),
        ("target = { 'mine.py:fusd' = {} }", ["target: the table of mine.py:fusd", "mine.py has no fusd"]),
        ("target = { 'other.py:fused' = {} }", ["target: the table of other.py:fused", "other.py cannot be read"]),
        ("target = { 'mine.py:f' = 3 }", ["target: the settings of mine.py:f", "3"]),
        ("target = { 'mine.py:f' = { ops = 'mhc' } }", ["target: unknown key 'ops'", "did you mean 'op'?"]),
        ("target = { 'mine.py:f' = { op = ['mhc'] } }", ["target: op is ['mhc']", "one operator"]),
        ("target = { 'mine.py:f' = { op = 'layernorm' } }", ["target:", "did you mean 'layer_norm'?"]),
        ("target = { 'mine.py:f' = { framework = 'toch' } }", ["target:", "did you mean 'torch'?"]),
        ("target = { 'mine.py:f' = { mode = 'train' } }", ["target:", "did you mean 'training'"]),
        ("target = { 'mine.py:f' = { layout = 'first' } }", ["target:", "channels-first"]),
        ("target = { 'mine.py:f' = { fixed = { epsilon = 1 } } }", ["target:", "epsilon"]),
        ("target = { 'mine.py:f' = { forward-only = 1 } }", ["target: forward_only is 1"]),
        ("target = { 'mine.py:f' = { conventions = 'x' } }", ["target: conventions is 'x'"]),
        ("target = { nmpy = { mode = 'training' } }", ["target:", "did you mean 'numpy'?"]),
        ("interpreters = 'venv'", ["interpreters:", "table"]),
        ("interpreters = { mxnt = 'venv' }", ["interpreters:", "did you mean 'mxnet'?"]),
        ("interpreters = { mxnet = 3 }", ["interpreters:", "mxnet", "3"]),
        ("interpreters = { mxnet = '' }", ["interpreters:", "mxnet"]),
        ("seed = ", ["not TOML", "line 2"]),
    ],
)
def test_each_mistake_names_the_file_the_key_and_what_is_expected(write, calls, capsys, line, words):
    """One line, exit 2, and nothing is checked."""
    write(f"[tool.normspec]\n{line}\n")
    assert main(["check", "numpy"]) == 2
    assert calls == []
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("normspec: pyproject.toml")
    assert err.count("\n") == 1
    assert all(word in err for word in words), err


def test_what_is_no_table_is_told(write):
    """`normspec = 3` below `[tool]` is a mistake, and not the absence of a table."""
    write("[tool]\nnormspec = 3\n")
    with pytest.raises(WrongConfiguration, match="not a table"):
        configuration()


def test_a_file_can_be_named(write, project):
    """`--config` takes any file with the table, and one without it is an error."""
    write("[tool.normspec]\nseed = 1\n")
    other = project / "other" / "checks.toml"
    other.parent.mkdir()
    other.write_text('[tool.normspec]\ntargets = ["mine.py:f"]\n', encoding="utf-8")
    assert configuration(str(other)).values == {"targets": ("other/mine.py:f",)}
    other.write_text("seed = 1\n", encoding="utf-8")
    with pytest.raises(WrongConfiguration, match=r"no table \[tool\.normspec\]"):
        configuration(str(other))
    other.write_bytes(b"\xff\xfe")
    with pytest.raises(WrongConfiguration, match="UTF-8"):
        configuration(str(other))
    with pytest.raises(WrongConfiguration, match=r"^~nosuchuser/checks\.toml names no user's home"):
        configuration("~nosuchuser/checks.toml")


def test_a_run_takes_what_is_configured(write, calls):
    """Without a flag each key reaches the engine."""
    write(EVERYTHING.replace('numpy = "python3.10"\n', "").replace('"mine.py:layer_norm" = "../other"\n', ""))
    assert main(["check"]) == 0
    ((targets, options),) = calls
    assert targets == ("numpy", "mine.py:layer_norm", "package.module:batch_norm")
    assert options["op"] == ("layer_norm", "batch_norm")
    assert (options["profile"], options["device"], options["seed"]) == ("quick", "cuda:1", 7)
    assert options["dtypes"] == ("float32", "float64")
    assert (options["time_limit"], options["memory_limit"]) == (2.5, 512 << 20)
    assert options["conventions"] is None
    assert options["per_target"] == {
        "": {"conventions": {"momentum": "old", "subnormals": "flushed"}, "mode": "inference"}
    }
    assert (options["only"], options["require"]) == (("gradients", "LN-F3"), ("deterministic",))
    assert (options["binding"], options["mode"]) == (("torch.nn.functional.*",), None)
    assert set(options["python"]) == {"mxnet", "keras[torch]"}


def test_a_target_has_a_table_of_its_own(write, calls, project, monkeypatch):
    """It reaches the engine under the target's name, however the path of its file is written."""
    write(EVERYTHING)
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    assert main(["check", "../mine.py:fused", f"{project}/mine.py:other"]) == 0
    assert calls[0][1]["per_target"].keys() == {"", "../mine.py:fused"}
    assert calls[0][1]["per_target"]["../mine.py:fused"]["op"] == "batch_norm"
    assert main(["check", f"{project}/inner/../mine.py:fused", "--op", "layer_norm"]) == 0
    assert "op" not in calls[1][1]["per_target"][f"{project}/inner/../mine.py:fused"]


def test_flags_override_what_is_configured(write, calls):
    """A flag replaces the configured value, even with the default; a flag for one name replaces only that name's."""
    write(EVERYTHING)
    flags = "check torch mxnet --op mhc --profile standard --dtype float16 --device cpu --seed 0 --time-limit 60"
    flags += " --only LN-F1 --require CM-P3 --binding numpy.*"
    flags += " --memory-limit 8GiB --convention momentum=new --python mxnet=venv"
    assert main(flags.split()) == 0
    ((targets, options),) = calls
    assert targets == ("torch", "mxnet")
    assert options["op"] == ("mhc",)
    assert (options["profile"], options["device"], options["seed"]) == ("standard", "cpu", 0)
    assert options["dtypes"] == ("float16",)
    assert (options["only"], options["require"], options["binding"]) == (("LN-F1",), ("CM-P3",), ("numpy.*",))
    assert (options["time_limit"], options["memory_limit"]) == (60.0, 8 << 30)
    assert options["conventions"] == {"momentum": "new"}
    assert options["python"]["mxnet"] == "venv"
    assert options["python"]["keras[torch]"] == "/opt/keras/bin/python"


def test_an_interpreter_given_for_all_replaces_those_configured(write, calls):
    """`--python PATH` applies to every target, whatever the configuration says about one."""
    write(EVERYTHING)
    assert main(["check", "mxnet", "--python", "venv"]) == 0
    assert calls[0][1]["python"] == {"": "venv"}


def test_everything_installed_includes_what_has_an_interpreter(write, calls, project):
    """With no target named or configured, a configured interpreter counts as an installation."""
    (project / "venv" / "bin").mkdir(parents=True)
    (project / "venv" / "bin" / "python").symlink_to(sys.executable)
    write('[tool.normspec.interpreters]\nmxnet = "venv"\n')
    assert main(["check"]) == 0
    assert calls[0][0] == ("numpy", "torch", "mxnet")


def test_a_configured_interpreter_that_is_none_is_told_where_it_is_needed(write, calls, capsys):
    """It is an error of the configuration for its own target, and no matter for others."""
    write('[tool.normspec.interpreters]\nmxnet = "nowhere/python"\n')
    assert main(["check", "numpy"]) == 0
    capsys.readouterr()
    assert main(["check", "mxnet"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("normspec: pyproject.toml: interpreters.mxnet: ")
    assert "nowhere/python" in err
    assert err.count("\n") == 1


def test_a_function_of_the_project_is_checked_from_any_folder(write, project, monkeypatch, capsys):
    """Nothing is faked here: the configured function is found, and judged under the configured interpreter."""
    function = "import numpy as np\n\ndef layer_norm(x, gamma, beta, *, eps, axes):\n    return np.zeros_like(x)\n"
    (project / "mine.py").write_text(function, encoding="utf-8")
    write(
        '[tool.normspec]\ntargets = ["mine.py:layer_norm"]\nprofile = "quick"\ndtypes = ["float32"]\n'
        f"interpreters = {{ 'mine.py:layer_norm' = {sys.executable!r} }}\n"
    )
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    assert main(["check", "--forward-only"]) == 1
    out = capsys.readouterr().out
    assert "../mine.py:layer_norm" in out
    assert "profile quick" in out


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    """Some editors on Windows write one."""
    path = tmp_path / "normspec.toml"
    path.write_text('profile = "quick"\n', encoding="utf-8-sig")
    assert configuration(str(path)).values["profile"] == "quick"
