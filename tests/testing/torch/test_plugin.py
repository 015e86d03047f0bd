"""The pytest plugin on a framework, which has no file and line of the user's."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from ...conftest import PLUGIN


def test_a_framework_is_tested(pytester):
    """A requirement that holds passes, advice is a warning, and a known violation is no failure."""
    some = ("--normspec-op", "layer_norm", "--normspec-dtype", "float32", "-k", "LN-F3 or LN-R1 or LN-G13 or CM-A2")
    found = pytester.runpytest_subprocess(*PLUGIN, "--normspec", "torch", *some)
    found.assert_outcomes(passed=4, deselected=found.parseoutcomes()["deselected"])
    found.stdout.fnmatch_lines(["*NormspecAdvice: LN-R1 squares that overflow (torch.nn.LayerNorm: float32)*"])


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_run_takes_as_long_as_that_of_the_command(tmp_path):
    """All of PyTorch at quick takes at most 1.15 times the processor time, workers included; medians of turns."""
    plugin = [sys.executable, "-m", "pytest", *PLUGIN, "-q", "-p", "no:cacheprovider", "--normspec", "torch"]
    command = [sys.executable, "-m", "normspec", "check", "torch", "--profile", "quick"]
    _seconds(command, tmp_path)  # exact values are kept, and only the first run computes them
    ours, theirs = zip(*((_seconds(plugin, tmp_path), _seconds(command, tmp_path)) for _ in range(5)), strict=True)
    assert statistics.median(ours) <= 1.15 * statistics.median(theirs), (ours, theirs)


def _seconds(command: list[str], folder: Path) -> float:
    """The processor time of a process and of all that it started."""
    before = os.times()
    subprocess.run(command, cwd=folder, env={**os.environ, "NORMSPEC_RESULTS": "none"}, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
