"""The program that measures the figures of docs/accuracy.md runs, and computes correctly from them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


@pytest.fixture
def benchmark(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a file of benchmarks/, which no installation has."""
    monkeypatch.syspath_prepend(str(checkout / "benchmarks"))
    return importlib.import_module


@pytest.mark.nightly
def test_a_row_is_measured_against_another_version(checkout: Path, tmp_path: Path) -> None:
    """The command prints both versions and their ratio, and writes each run; afterwards the working tree is removed."""
    if not (checkout / ".git").exists():
        pytest.skip("no other version without git")
    file = tmp_path / "figures.json"
    command = [sys.executable, "benchmarks/speed.py", "--row", "numpy-quick", "--runs", "1", "--against", "HEAD"]
    done = subprocess.run([*command, "--json", str(file)], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (figure,) = json.loads(file.read_text(encoding="utf-8"))["figures"]
    ((now,), (then,)) = figure["values"]["now"], figure["values"]["then"]
    assert figure["ratio"] == pytest.approx(now / then)
    assert f"now/then {figure['ratio']:.3g}" in done.stdout
    trees = subprocess.run(["git", "worktree", "list"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    assert "then/normspec" not in trees


def test_a_ratio_is_the_median_of_neighbouring_runs(benchmark: Any) -> None:
    """A slow spell during one run of both versions does not change the ratio."""
    table = benchmark("table")
    values = [(1.0, 2.0), (10.0, 20.0), (3.0, 2.0)]
    runs = [{"then": table.Taken({"": then}), "now": table.Taken({"": now})} for now, then in values]
    (line,) = table.lines("what", runs)
    assert line.ratio == 0.5
    assert line.text() == "what: then 2, now 3, now/then 0.5"


def test_what_a_version_lacks_is_told(benchmark: Any) -> None:
    """Its place says why, and there is no ratio."""
    table = benchmark("table")
    (line,) = table.lines("what", [{"then": table.Taken(missing="no cache"), "now": table.Taken({"": 2.0})}])
    assert (line.ratio, line.text()) == (None, "what: now 2, then — (no cache)")


def test_the_model_of_many_machines(benchmark: Any) -> None:
    """Two machines have 6 seconds each of 4, 3, 3 and 2; of many, the longest and what cannot be shared count."""
    machines = benchmark("rows.machines")
    assert machines.makespan([4, 3, 3, 2], 1) == 12
    assert machines.makespan([4, 3, 3, 2], 2) == 6
    found = machines.model([4, 3, 3, 2], 1, 2)
    assert found["one machine"] == 15
    assert found["2 machines, times"] == pytest.approx(15 / 9)
    assert found["64 machines, times"] == found["any number, times"] == pytest.approx(15 / 7)
