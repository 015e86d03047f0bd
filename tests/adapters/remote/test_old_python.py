"""A worker under an interpreter and a NumPy that normspec itself does not run on."""

from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np
import pytest

import normspec
from normspec.spec.operators import OPERATORS


def _old_python() -> str:
    """A Python 3.8 with NumPy: the one that NORMSPEC_OLD_PYTHON names, or one on the path; empty for none."""
    for python in (os.environ.get("NORMSPEC_OLD_PYTHON"), shutil.which("python3.8")):
        if python:
            code = "import sys, numpy; sys.exit(sys.version_info[:2] != (3, 8))"
            if subprocess.run([python, "-c", code], check=False, capture_output=True).returncode == 0:
                return python
    return ""


@pytest.fixture(scope="module")
def old_python() -> str:
    """The path of it."""
    python = _old_python()
    if not python:
        pytest.skip("there is no Python 3.8 with NumPy: NORMSPEC_OLD_PYTHON names one")
    return python


def test_the_numpy_target_conforms_under_python_3_8(old_python):
    """Everything that a worker imports runs there, with only NumPy installed."""
    report = normspec.check("numpy", python=old_python, profile="quick", dtypes=["float32"])
    assert report.conforms
    assert {result.op for result in report.results} == set(OPERATORS)
    assert report.subjects[0]["version"] != np.__version__


def test_a_function_of_ones_own_under_python_3_8(old_python, tmp_path):
    """A user's file does too, with packages installed there and not here."""
    file = tmp_path / "layers.py"
    file.write_text(
        "import sys\nimport numpy as np\nassert sys.version_info[:2] == (3, 8)\n\n"
        "def layer_norm(x, gamma, beta, *, eps, axes):\n    return x\n"
    )
    report = normspec.check(f"{file}:layer_norm", python=old_python, profile="quick", dtypes=["float64"])
    assert report.exit_status == 1
    assert not report.errors()
