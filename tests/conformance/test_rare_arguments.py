"""Mistakes that show only for arguments of a rare kind: a case of the deck has each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.target import Target
from normspec.conformance.judging.verdicts import Verdict

from .runs import VARIANT, function, result, run, variant_function

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def _without_the_last_block(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """The statistics lack the last 32 values where n is a multiple of 96 and not of 128."""
    y = call(x, *arguments, **settings)
    if x.shape[-1] % 96 or x.shape[-1] % 128 == 0:
        return y
    return call(np.concatenate([x[..., :-32], x[..., :32]], axis=-1), *arguments, **settings)


def _one_width(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Half of y at n = 5120."""
    return call(x, *arguments, **settings) / (2 if x.shape[-1] == 5120 else 1)


def _first_row_of_gamma(call: Callable[..., Any], x: np.ndarray, gamma: Any, beta: Any, **settings: Any) -> Any:
    """Two normalised axes of 16 values or more share the first row of gamma."""
    if gamma is not None and gamma.ndim == 2 and min(gamma.shape) >= 16:
        gamma = np.broadcast_to(gamma[:1], gamma.shape)
    return call(x, gamma, beta, **settings)


def _first_of_three_axes(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """Of three normalised axes, the first has two values at most, or y is twice as large."""
    axes = settings["axes"]
    return call(x, *arguments, **settings) * (2 if len(axes) == 3 and x.shape[axes[0]] > 2 else 1)


def _axis_from_the_end(call: Callable[..., Any], x: np.ndarray, *arguments: Any, **settings: Any) -> Any:
    """A channel axis of -2 or less is axis 1 where that has as many values."""
    axis = settings["channel_axis"]
    taken = 1 if axis < -1 and x.shape[1] == x.shape[axis] else axis
    return call(x, *arguments, **{**settings, "channel_axis": taken})


@pytest.mark.parametrize(
    ("variant", "change", "requirement", "profile"),
    [
        ("ln-plain", _without_the_last_block, "CM-S1", "quick"),
        ("ln-plain", _one_width, "CM-S1", "standard"),
        ("ln-plain", _first_row_of_gamma, "LN-F5", "quick"),
        ("ln-plain", _first_of_three_axes, "LN-F1", "quick"),
        ("bn-plain", _axis_from_the_end, "BN-F7", "quick"),
        ("in-two-pass", _axis_from_the_end, "IN-F7", "quick"),
    ],
)
def test_it_is_violated(variant: str, change: Callable[..., Any], requirement: str, profile: str) -> None:
    """The requirement about it is violated in float32."""
    report = run(variant_function(variant, change), requirements={requirement}, profile=profile)
    assert result(report, requirement).verdict is Verdict.FAIL


def test_a_cotangent_whose_values_cancel_is_not_zero() -> None:
    """A vjp that takes a sum of 0 for a cotangent of 0 violates LN-G1."""
    made = VARIANT["ln-plain"].build()

    def vjp(x: np.ndarray, gamma: Any, beta: Any, g: np.ndarray, **settings: Any) -> Any:
        dx, *others = made.vjp(x, gamma, beta, g, **settings)
        return (dx if g.sum() else np.zeros_like(dx), *others)

    target: Target = function("layer_norm", made.call, vjp=vjp)
    assert result(run(target, requirements={"LN-G1"}), "LN-G1").verdict is Verdict.FAIL


def test_a_scale_that_is_kept_under_the_first_mean_only() -> None:
    """In inference, a batch_norm that keeps r of a shape and its first running mean violates CM-P2."""
    made, kept = VARIANT["bn-plain"].build(), dict[object, np.ndarray]()

    def batch_norm(x: np.ndarray, gamma: Any, beta: Any, mean: np.ndarray, var: np.ndarray, **settings: Any) -> Any:
        if not settings["training"] and len(mean):
            key = (x.shape, x.dtype, settings["eps"], float(mean[0]))
            var = kept.setdefault(key, var.copy())
        y, *statistics = made.call(x, gamma, beta, mean, var, **settings)
        return (y, *statistics)

    report = run(function("batch_norm", batch_norm), requirements={"CM-P2"}, forward_only=True)
    assert result(report, "CM-P2").verdict is Verdict.FAIL
