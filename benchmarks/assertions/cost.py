"""The cost of an assertion, relative to the operator's in float64 NumPy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from normspec import testing

from .data import DTYPES, Array, drawn

#: Shapes of x; a row of the last axis is a group.
SHAPES = (
    (4, 64), (16, 256), (32, 512), (64, 768), (33, 1000), (128, 1024), (8, 197, 768), (256, 4096), (1023, 1025),
    (4, 512, 1024), (1024, 3072), (2048, 5120), (8192, 2048), (4096, 8192),
)  # fmt: skip


def plain(x: Array, gamma: Array, beta: Array) -> Array:
    """LayerNorm over the last axis, written simply."""
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt(np.square(d).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def pulled(x: Array, gamma: Array, g: Array) -> tuple[Array, Array, Array]:
    """Its gradients."""
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(-1, keepdims=True) + 1e-5)
    xh, h = d * r, gamma * g
    dx = r * (h - h.mean(-1, keepdims=True) - xh * (h * xh).mean(-1, keepdims=True))
    before = tuple(range(x.ndim - 1))
    return dx, (g * xh).sum(before), g.sum(before)


def cost() -> None:
    """Print the median ratio of both processor times, taken in turns, for y and for the gradients."""
    print(f"| shape | values | {' | '.join(DTYPES)} |\n|---|---|{'---|' * len(DTYPES)}")
    for shape in SHAPES:
        cells = [_cell(shape, dtype) for dtype in DTYPES]
        print(f"| {' x '.join(map(str, shape))} | {np.prod(shape):,} | {' | '.join(cells)} |", flush=True)


def _cell(shape: tuple[int, ...], dtype: str) -> str:
    inputs, g = drawn("layer_norm", dtype, np.random.default_rng(0), shape)
    x, gamma, beta, wide_g = (value.astype(np.float64) for value in (*inputs.values(), g))
    y = plain(x, gamma, beta).astype(g.dtype)
    back = [value.astype(g.dtype) for value in pulled(x, gamma, wide_g)]
    runs = 3 if x.size >= 1 << 20 else 15
    values = _ratio(runs, partial(plain, x, gamma, beta), partial(testing.assert_layer_norm, y, **inputs))
    assertion = partial(testing.assert_layer_norm_grads, *back, inputs["x"], inputs["gamma"], g)
    return f"{values:.1f}, {_ratio(runs, partial(pulled, x, gamma, wide_g), assertion):.1f}"


def _ratio(runs: int, operator: Callable[[], Any], assertion: Callable[[], Any]) -> float:
    return statistics.median(1 / _seconds(operator) * _seconds(assertion) for _ in range(runs))


def _seconds(function: Callable[[], Any]) -> float:
    """The processor time of a call, over many calls if one is short; other processes do not count."""
    calls, started = 0, time.process_time()
    while time.process_time() - started < 0.01:
        function()
        calls += 1
    return (time.process_time() - started) / calls
