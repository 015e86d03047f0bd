"""Mistakes with state: traces of other calls, and what a call leaves behind."""

from __future__ import annotations

import numpy as np

from .plain import finished, forward, lines, mean, scaled, square, var
from .written import made, whole


@made(
    "statistics-of-the-last-batch",
    "layer_norm",
    "takes mean and variance of the call before, where the shape is the same",
    "ln-eval-uses-train-stats",
)
def _():
    kept: dict[object, object] = {}

    def call(x, gamma, beta, *, eps, axes):
        settings = {"axes": axes}
        rows = lines("layer_norm", x, settings).rows
        own = mean(rows), var(rows)
        centre, spread = kept.get((x.shape, axes), own)
        kept[x.shape, axes] = own
        return finished(
            "layer_norm", x, (rows - centre) / np.sqrt(spread + rows.dtype.type(eps)), gamma, beta, settings
        )

    return call


@made(
    "right-for-ten-calls",
    "layer_norm",
    "is right for ten calls, and then adds 1 to the first value",
    "td-state-drift-after-check",
)
def _():
    calls = [0]

    def call(x, gamma, beta, *, eps, axes):
        calls[0] += 1
        y = forward("layer_norm", x, gamma, beta, eps, {"axes": axes})
        if calls[0] > 10 and y.size:
            y.reshape(-1)[0] += 1
        return y

    return call


def _raced(operator):
    """One group of some calls is divided by the root of another, as threads do that do not wait."""
    calls = [0]

    def call(x, gamma, *rest, eps, axes):
        calls[0] += 1
        settings = {"axes": axes}
        rows = lines(operator, x, settings).rows
        centre = mean(rows) if operator == "layer_norm" else np.zeros_like(rows[:, :1])
        spread = var(rows) if operator == "layer_norm" else square(rows)
        if len(rows) > 1 and calls[0] * 7 % 5 == 0:
            spread = spread.copy()
            spread[calls[0] % len(rows)] = spread[(calls[0] + 1) % len(rows)]
        xhat = (rows - centre) / np.sqrt(spread + rows.dtype.type(eps))
        return finished(operator, x, xhat, gamma, rest[0] if rest else None, settings)

    return call


made(
    "race-in-shared-memory", "layer_norm", "divides a group by the root of another in some calls", "ln-smem-reuse-race"
)(lambda: _raced("layer_norm"))
made("rms-race-in-shared-memory", "rms_norm", "divides a group by the root of another in some calls", "rms-smem-race")(
    lambda: _raced("rms_norm")
)


@made(
    "rms-residual-uninitialised",
    "rms_norm",
    "adds to x what an array that is not initialised holds: the y of the call before",
    "rms-fusedadd-uninitialised-residual",
)
def _():
    left: dict[object, np.ndarray] = {}

    def call(x, gamma, *, eps, axes):
        rows = lines("rms_norm", x + left.get(x.shape, x.dtype.type(0)), {"axes": axes}).rows
        y = finished("rms_norm", x, scaled(rows, rows.dtype.type(eps)), gamma, None, {"axes": axes})
        left[x.shape] = y.copy()
        return y

    return call


@whole("zeros", "layer_norm", "returns zeros", "td-zeros-pass")
def _(x, gamma, beta, *, eps, axes):
    return np.zeros_like(x)


@whole("rms-zeros", "rms_norm", "returns zeros", "rms-compile-returns-zeros")
def _(x, gamma, *, eps, axes):
    return np.zeros_like(x)
