"""Targets in workers, ended after each test."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from normspec.adapters.remote.host import Limits
from normspec.adapters.remote.launching import opened_target, start_host
from normspec.adapters.remote.target import RemoteTarget

LAYER_NORM = {"eps": 0.1, "axes": (-1,)}


@pytest.fixture
def opened() -> Iterator[Callable[..., RemoteTarget]]:
    """Open a target by its name, in its own worker."""
    targets = []

    def opened(name: str, *, seconds: float = 30.0, memory: int | None = 1 << 30, **options: object) -> RemoteTarget:
        targets.append(opened_target(start_host(name, limits=Limits(seconds, memory), **options)))
        return targets[-1]

    yield opened
    for target in targets:
        target.close()


@pytest.fixture
def function(tmp_path: Path, opened: Callable[..., RemoteTarget]) -> Callable[..., RemoteTarget]:
    """Open the layer_norm of a file with this source."""

    def function(source: str, **options: object) -> RemoteTarget:
        path = tmp_path / "layers.py"
        path.write_text("import numpy as np\n" + textwrap.dedent(source), encoding="utf-8")
        return opened(f"{path}:layer_norm", **options)

    return function


@pytest.fixture
def inputs() -> dict[str, np.ndarray]:
    """Inputs of layer_norm over the last axis."""
    rng = np.random.Generator(np.random.Philox(1))
    return {"x": rng.normal(1.0, 2.0, (4, 7)), "gamma": rng.normal(1.0, 0.5, 7), "beta": rng.normal(0.0, 1.0, 7)}


@pytest.fixture
def call(inputs: dict[str, np.ndarray]) -> Callable[..., dict[str, np.ndarray]]:
    """Call a target's first binding, with x scaled by a number that identifies the call."""

    def call(target: RemoteTarget, number: float = 1.0) -> dict[str, np.ndarray]:
        target.begin()
        session = target.session(target.bindings[0])
        return session.start({**inputs, "x": number * inputs["x"]}, LAYER_NORM).outputs()

    return call
