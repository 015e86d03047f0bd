"""The cost of an assertion on small arrays: its number of NumPy calls, which is the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import normspec.testing as testing


class Counted(np.ndarray):
    """An array that counts NumPy's operations on it, and on results derived from it."""

    calls = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **settings):
        """Count, and compute as ever."""
        Counted.calls += 1
        if out:
            settings["out"] = tuple(map(_plain, out))
        if "where" in settings:
            settings["where"] = _plain(settings["where"])
        found = getattr(ufunc, method)(*map(_plain, inputs), **settings)
        return found.view(Counted) if isinstance(found, np.ndarray) else found


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def calls(function: Callable[..., Any], *arrays: np.ndarray) -> int:
    """How many operations a call of a function on these arrays takes."""
    Counted.calls = 0
    function(*(value.view(Counted) for value in arrays))
    return Counted.calls


def layer_norm(x, gamma, beta):
    """LayerNorm over the last axis, as one writes it."""
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt(np.square(d).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def pulled(x, gamma, g):
    """Its gradients."""
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt(np.square(d).mean(-1, keepdims=True) + 1e-5)
    xh, h = d * r, gamma * g
    dx = r * (h - h.mean(-1, keepdims=True) - xh * (h * xh).mean(-1, keepdims=True))
    return dx, (g * xh).sum(0), g.sum(0)


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
def test_an_assertion_that_plainly_holds_computes_four_times_as_often_as_the_operator(dtype):
    """At most, on any shape with few values: for y, and for the three gradients."""
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((4, 8)).astype(dtype) for _ in range(2))
    gamma, beta = (rng.standard_normal(8).astype(dtype) for _ in range(2))
    wide = [value.astype(np.float64) for value in (x, gamma, beta, g)]
    y, gradients = layer_norm(*wide[:3]), pulled(wide[0], wide[1], wide[3])
    asked = calls(testing.assert_layer_norm, *(value.astype(dtype) for value in (y, x, gamma, beta)))
    assert asked <= 4 * calls(layer_norm, *wide[:3])
    asked = calls(testing.assert_layer_norm_grads, *(value.astype(dtype) for value in (*gradients, x, gamma, g)))
    assert asked <= 4 * calls(pulled, wide[0], wide[1], wide[3])
