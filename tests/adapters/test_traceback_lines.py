"""The line of an exception that its reader can change: the innermost one in a file of theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import normspec
from normspec.adapters.stage import Stage
from normspec.adapters.traceback_lines import innermost
from normspec.adapters.worker.failures import error_from_plain, error_to_plain
from normspec.spec.errors import SourceLine, TargetRaised

CODE = """
import json

def outer():
    return inner()

def inner():
    return json.loads("{")  # a library raises
"""


@pytest.fixture
def outer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FunctionType:
    """A function of a file in the current folder, which calls another, which calls a library."""
    file = tmp_path / "mine.py"
    file.write_text(CODE)
    monkeypatch.chdir(tmp_path)
    names: dict[str, FunctionType] = {}
    exec(compile(CODE, str(file), "exec"), names)
    return names["outer"]


def test_the_innermost_own_line_is_told(outer: FunctionType) -> None:
    """Not the library's line, which nobody would change, nor the line that called the function."""
    with pytest.raises(json.JSONDecodeError) as raised:
        outer()
    assert innermost(raised.value) == SourceLine("mine.py", 8, 'return json.loads("{")  # a library raises')


def test_a_stage_tells_it(outer: FunctionType) -> None:
    """The exception of a target carries the line."""
    with pytest.raises(TargetRaised) as raised, Stage("call"):
        outer()
    assert raised.value.where is not None and str(raised.value.where) == "mine.py:8"


def test_code_without_a_file_has_no_line() -> None:
    """Code compiled from a text, or exceptions of installed packages, have no line."""
    with pytest.raises(ZeroDivisionError) as raised:
        eval("1 / 0")
    trace = raised.value.__traceback__
    assert trace is not None
    assert innermost(raised.value.with_traceback(trace.tb_next)) is None
    with pytest.raises(np.linalg.LinAlgError) as installed:
        np.linalg.inv(np.zeros((2, 2)))
    trace = installed.value.__traceback__
    assert trace is not None
    assert innermost(installed.value.with_traceback(trace.tb_next)) is None


def test_a_line_of_ours_is_not_the_users(tmp_path: Path) -> None:
    """Even if normspec is imported through a symbolic link: the error is told without a line then."""
    (tmp_path / "normspec").symlink_to(Path(normspec.__path__[0]), target_is_directory=True)
    code = """
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.traceback_lines import innermost

try:
    BRIDGE.array(None, "y")
except Exception as error:
    print(innermost(error.with_traceback(error.__traceback__.tb_next)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "None"


def test_it_crosses_the_line_between_worker_and_judge() -> None:
    """As plain values, and equal on the other side."""
    where = SourceLine("mine.py", 3, "raise ValueError")
    told = json.loads(json.dumps(error_to_plain(TargetRaised(ValueError("no"), "call", where=where))))
    back = error_from_plain(told)
    assert isinstance(back, TargetRaised) and back.where == where


@pytest.mark.parametrize("where", [None, "mine.py:3", ["mine.py"], ["mine.py", "3", ""], 7])
def test_a_worker_may_tell_none_or_nonsense(where: object) -> None:
    """A worker in another language has no such line; an invalid one counts as none."""
    told = {**error_to_plain(TargetRaised(ValueError("no"), "call")), "where": where}
    back = error_from_plain(told)
    assert isinstance(back, TargetRaised) and back.where is None
