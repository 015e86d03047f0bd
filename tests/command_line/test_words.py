"""The command's messages for requests that are nearly right: names of packages, paths, help, remaining work."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from normspec.conformance.campaign.running import _Work
from normspec.conformance.campaign.store import _differences
from normspec.conformance.command_line.root import main, normspec
from normspec.conformance.reporting.versions import name_and_version, version_label


@pytest.mark.parametrize(
    ("target", "framework", "beside", "whole"),
    [
        ("torch", "torch", "2.13.0", "torch 2.13.0"),
        ("flax", "jax", "2.13.0", "flax 2.13.0"),
        ("equinox", "jax", "2.13.0", "equinox 2.13.0"),
        ("onnxruntime", "onnx", "2.13.0", "onnxruntime 2.13.0"),
        ("onnx-reference", "onnx", "onnx 2.13.0", "onnx 2.13.0"),
        ("keras[torch]", "keras", "keras 2.13.0", "keras 2.13.0"),
        ("mine.py:layer_norm", "jax", "jax 2.13.0", "jax 2.13.0"),
    ],
)
def test_a_version_stands_beside_the_package_that_it_is_of(target, framework, beside, whole):
    """Flax's version is not JAX's; of a function, the version is that of its framework."""
    subject = {"target": target, "framework": framework, "version": "2.13.0"}
    assert (version_label(subject), name_and_version(subject)) == (beside, whole)


@pytest.mark.parametrize("target", ["nb.ipynb:layer_norm", "some/nb.ipynb", "some/nb.ipynb:layer_norm"])
def test_a_notebook_is_told_as_one(target, capsys):
    """It says what to do instead, and not that a module is missing."""
    assert main(["check", target]) == 2
    err = capsys.readouterr().err
    assert "nb.ipynb is a notebook" in err
    assert "nb.py" in err
    assert err.count("\n") == 1


@pytest.mark.skipif(os.sep != "/", reason="paths are written so here")
@pytest.mark.parametrize(
    ("target", "instead"),
    [
        (r"C:\work\mine.py:layer_norm", "under WSL, write /mnt/c/work/mine.py:layer_norm"),
        (r"C:\work\mine.py", "under WSL, write /mnt/c/work/mine.py\n"),
        (r"src\mine.py:layer_norm", "write src/mine.py:layer_norm"),
    ],
)
def test_a_path_of_windows_is_told_as_one(target, instead, capsys):
    """Elsewhere than on Windows it says how the path is written."""
    assert main(["check", target]) == 2
    assert instead in capsys.readouterr().err


@pytest.mark.skipif(os.sep != "/", reason="paths are written so here")
def test_a_file_may_have_such_a_name(tmp_path, monkeypatch, capsys):
    """A backslash is an ordinary letter in a name if such a file exists."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / r"a\b.py").write_text("def layer_norm(x): return x\n", encoding="utf-8")
    assert main(["check", r"a\b.py:nothing_of_this_name", "--op", "layer_norm"]) == 2
    assert "Windows" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "compare", "campaign"])
def test_an_option_without_its_value_names_the_help_of_its_command(command, capsys):
    """Not that of the command as a whole."""
    assert main([command, "numpy", "--op"]) == 2
    assert f"`normspec {command} --help`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        ("check", "--quick", "--profile quick"),
        ("check", "--fast", "--profile quick"),
        ("check", "--float16", "--dtype float16"),
        ("compare", "--half", "--dtype float16"),
        ("check", "--cuda", "--device cuda"),
        ("check", "--layer_norm", "--op layer_norm"),
        ("check", "--LayerNorm", "--op layer_norm"),
        ("check", "--training", "--mode training"),
        ("check", "--strict", "--require strict"),
        ("check", "--torch", "--framework torch"),
    ],
)
def test_an_option_that_is_a_value_of_another_is_told_so(command, option, meant, capsys):
    """The nearest spelling of an option is no help there."""
    assert main([command, option]) == 2
    told = capsys.readouterr().err
    assert told == f"normspec: No such option '{option}'; did you mean `{meant}`? (see `normspec {command} --help`)\n"


def test_an_option_that_the_command_lacks_is_not_suggested(capsys):
    """`compare` has no profiles; a misspelt option is answered with the nearest one."""
    assert main(["compare", "--quick"]) == 2
    assert "--profile" not in capsys.readouterr().err
    assert main(["check", "--profil", "quick"]) == 2
    assert "--profile" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--python", "--config", "--time-limit", "--memory-limit"])
def test_compare_takes_what_a_target_may_need(flag):
    """As with `check`: without an interpreter of its own MXNet could not be compared."""
    assert flag in CliRunner().invoke(normspec, ["compare", "--help"]).output


def test_the_help_of_compare_names_every_framework():
    """Its option is that of `check`."""
    text = " ".join(CliRunner().invoke(normspec, ["compare", "--help"]).output.split())
    assert "numpy, torch, tensorflow, keras, jax, onnx, mxnet" in text


def test_compare_hands_on_interpreters_and_limits(monkeypatch, tmp_path, capsys):
    """From flags, or from the configuration if there are none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to("/bin/false")
    text = '[tool.normspec]\ntime-limit = 7\ninterpreters = { numpy = "venv" }\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    found = []

    def measure(targets, **options):
        found.append((targets, options))
        raise KeyboardInterrupt

    monkeypatch.setattr("normspec.conformance.compare.run.compare", measure)
    main(["compare", "numpy", "onnx-reference", "--memory-limit", "512MiB"])
    main(["compare", "numpy", "--python", "other", "--time-limit", "none"])
    (_, first), (_, second) = found
    assert (first["python"], first["time_limit"]) == ({"numpy": str(tmp_path / "venv")}, 7.0)
    assert first["memory_limit"] == 512 << 20
    assert (second["python"], second["time_limit"]) == ({"": "other"}, None)


def test_what_differs_of_a_campaign_is_told_in_grammar():
    """Several things are, and one is."""
    there = {"dtypes": ["float32"], "profile": "quick", "targets": ["numpy"], "op": None}
    here = {"dtypes": ["float64"], "profile": "standard", "targets": ["torch"], "op": ["mhc"]}
    assert _differences(there, here) == (
        "dtypes are float32 there and float64 here, profile is quick there and standard here, "
        "targets are numpy there and torch here, op is not given there and mhc here"
    )


def test_what_is_left_of_a_campaign_counts_those_who_share_it(monkeypatch):
    """Three processes that judged 30 seconds' worth of work in 10 need a third of the remaining time."""

    class Found:
        seconds = 0.0

        def seconds_for(self, waiting):
            return 60.0

    summary = Found()
    work = _Work(None, None, summary, (), None)  # type: ignore[arg-type]
    summary.seconds, work._started = 30.0, 100.0
    monkeypatch.setattr("normspec.conformance.campaign.running.time.perf_counter", lambda: 110.0)
    assert work._seconds_left() == pytest.approx(20.0)
    summary.seconds = 2.0  # most of the time went into something else
    assert work._seconds_left() == pytest.approx(60.0)
