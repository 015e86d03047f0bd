"""The program that measures the figures of docs/testing.md runs, and compares as `torch.testing.assert_close` does."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def test_the_sound_functions_hold_on_draws(checkout: Path) -> None:
    """The command judges the sound function of each operator in each dtype, and says how much it judged."""
    command = [sys.executable, "benchmarks/assertion.py", "alarms", "20"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("20 draws, ") and done.stdout.endswith(" elements, no false alarm\n")


def test_the_fitted_tolerance_is_the_least_that_holds(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference just at the limit is close; with a missing result nothing is close."""
    monkeypatch.syspath_prepend(str(checkout / "benchmarks"))
    caught = importlib.import_module("assertions.caught")
    values = [(np.array([1.0, 4.0]), np.array([1.0, 3.0]))]
    found = caught.Returned("randn", "a function", True, True, values)
    assert found.tolerance == 0.25
    assert found.close(0.25, 0.25) and not found.close(0.249, 0.249)
    lacking = caught.Returned("randn", "another", False, True, [*values, caught._pair_of(None, np.ones(2))])
    assert not lacking.close(1e9, 1e9)
