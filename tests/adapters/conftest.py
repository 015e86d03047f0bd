"""Fixtures for tests of targets: files written on the spot, and calls to make of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a Python file into an empty directory and return its path."""

    def write(source: str, name: str = "layers.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def layer_norm_inputs() -> dict[str, np.ndarray]:
    """Inputs of layer_norm over the last axis, in float64, with no two sizes alike."""
    rng = np.random.Generator(np.random.Philox(1))
    return {
        "x": rng.normal(1.0, 2.0, (4, 7)),
        "gamma": rng.normal(1.0, 0.5, 7),
        "beta": rng.normal(0.0, 1.0, 7),
    }


@pytest.fixture
def batch_norm_inputs() -> dict[str, np.ndarray]:
    """Inputs of batch_norm with three channels on the last axis, in float64."""
    rng = np.random.Generator(np.random.Philox(2))
    return {
        "x": rng.normal(1.0, 2.0, (5, 3)),
        "gamma": rng.normal(1.0, 0.5, 3),
        "beta": rng.normal(0.0, 1.0, 3),
        "running_mean": rng.normal(0.0, 1.0, 3),
        "running_var": rng.uniform(0.5, 2.0, 3),
    }
