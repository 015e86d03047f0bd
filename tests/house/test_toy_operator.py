"""An operator in one file outside of the house is checked, explained and proven like those inside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version

TOY = Path(__file__).with_name("toy_operator.py")
QUICKLY = ("--op", "center", "--profile", "quick", "--dtype", "float32")


def normspec(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, run by the operator's own file."""
    command = [sys.executable, str(TOY), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_sound_function_conforms(tmp_path: Path) -> None:
    """It is judged on cases, sizes and layouts like those of any operator, and so are its gradients."""
    told = tmp_path / "report.json"
    done = normspec("check", f"{TOY}:center", *QUICKLY, "--json", str(told))
    assert done.returncode == 0, done.stdout + done.stderr
    passed = {one["requirement"] for one in json.loads(told.read_text())["results"] if one["verdict"] == "pass"}
    assert passed >= {"CE-F1", "CE-L1", "CM-T3", "CM-P2", "CM-S1", "CM-V1", "CM-N3"}


def test_a_wrong_function_fails_its_requirements() -> None:
    """The command ends with 1, and the report and its JSON name the violations."""
    done = normspec("check", f"{TOY}:shifted", *QUICKLY, "--forward-only", "--json", "-")
    failed = {one["requirement"] for one in json.loads(done.stdout)["results"] if one["verdict"] == "fail"}
    assert done.returncode == 1
    assert failed >= {"CE-F1", "CE-L1"}
    assert "CE-F1" in done.stderr


def test_its_requirements_are_explained() -> None:
    """With the sentence, the formula, the reason, the fault that it excludes and its file."""
    shown = normspec("explain", "CE-F1").stdout
    assert all(words in shown for words in ("less the mean", "y = x - mean(x)", "has the mean 0", "ce-last-left-out"))
    assert TOY.name in shown.replace("\n", "")


def test_the_self_test_kills_its_fault_and_accuses_no_variant() -> None:
    """The processes that the self-test starts know the operator too."""
    done = normspec("selftest", "--op", "center", "--dtype", "float32")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ce-summed-backwards" in done.stdout or "1 sound" in done.stdout, done.stdout
