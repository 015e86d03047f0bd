"""Requests that cannot be carried out: one line that says what to do, exit 2. Nothing is faked here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from normspec.conformance.command_line.root import main

FILE = """
import numpy as np

def layer_norm(x, gamma, beta, *, eps, axes):
    return x

def too_few(x):
    return x

number = 3
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A folder with a file of functions, and one that does not import."""
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import nonesuch_module\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("check nonesuch", "numpy"),
        ("check numpy --op nonesuch", "layer_norm"),
        ("check numpy --dtype int8", "float32"),
        ("check mine.py:layer_norm --framework nonesuch", "numpy"),
        ("check numpy --profile nonesuch", "quick"),
        ("check numpy --device nonesuch", "--device"),
        ("check missing.py:layer_norm", "missing.py"),
        ("check broken.py:layer_norm", "nonesuch_module"),
        ("check mine.py:nonesuch --op layer_norm", "too_few"),
        ("check mine.py:too_few --op layer_norm", "eps"),
        ("check mine.py:number --op layer_norm", "number"),
        ("check mine.py --op mhc", "--op mhc"),
        (f"check {'a' * 300}.py", "cannot be read: File name too long"),
        ("check numpy nonesuch", "nonesuch"),
        ("check numpy --python nowhere/python", "nowhere/python"),
        ("check numpy --python numpy=mine.py", "mine.py"),
        ("check numpy --config nowhere.toml", "nowhere.toml"),
        ("check numpy --config mine.py", "mine.py is not TOML"),
        ("check numpy --seed one", "'one' is not a whole number from 0 on"),
        ("check numpy --jobs 0", "'0' is not a whole number from 1 on"),
        ("list --config nowhere.toml", "nowhere.toml"),
        ("list --python nmpy=venv", "'numpy'"),
    ],
)
def test_each_mistake_is_one_line(arguments, word, capsys):
    """For any mistake in the request there is one line about it, and no report."""
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("normspec: ")
    assert err.count("\n") == 1
    assert word in err


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed here")
def test_a_framework_that_is_missing_names_the_extra(capsys):
    """The line has the command that installs it."""
    assert main(["check", "torch"]) == 2
    assert "in a clone of normspec, python -m pip install '.[torch]'" in capsys.readouterr().err


def test_a_file_that_hides_a_framework_is_named(tmp_path):
    """A file of the user's called like a framework is imported in its place: no installation helps."""
    (tmp_path / "torch.py").write_text("")
    command = [sys.executable, "-m", "normspec", "check", "torch", "--profile", "quick"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert f"the file {tmp_path / 'torch.py'} hides it. Rename that file" in ended.stderr
    assert "install" not in ended.stderr
