"""A second run on a framework that did not change."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest


@pytest.mark.campaign  # a quarter of an hour
@pytest.mark.timeout(3600)
def test_a_second_run_takes_less_than_two_seconds(tmp_path):
    """All operators and dtypes at the default profile: the second run says the same as the first."""
    environment = {**os.environ, "NORMSPEC_CACHE": str(tmp_path)}
    environment.pop("NORMSPEC_RESULTS", None)

    def run() -> tuple[list[str], float]:
        started = time.perf_counter()
        command = [sys.executable, "-m", "normspec", "check", "torch"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.rstrip().splitlines(), time.perf_counter() - started

    first, _ = run()
    told, seconds = zip(*(run() for _ in range(3)), strict=True)
    assert min(seconds) < 2
    assert all(one[-1] == first[-1] and "results of" in "\n".join(one) for one in told)
