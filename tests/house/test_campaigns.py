"""Tests marked `campaign` take many minutes each: they run where somebody asks for them, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def selected(checkout: Path, *options: str) -> str:
    """The names of the tests that pytest would run in a file with campaigns and other tests."""
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", *options, "tests/faults/test_aspects.py")
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("options", [(), ("-m", "not torch")])
def test_a_campaign_is_left_out(checkout: Path, options: tuple[str, ...]):
    """Whatever else `-m` says."""
    found = selected(checkout, *options)
    assert "test_every_aspect_of_a_sound_function" in found
    assert "on_many_seeds" not in found


def test_a_campaign_runs_where_it_is_asked_for(checkout: Path):
    """By its mark, and then nothing else."""
    found = selected(checkout, "-m", "campaign")
    assert "on_many_seeds" in found
    assert "test_every_aspect_of_a_sound_function" not in found
