"""Mistakes on the path for large calls are caught, whatever is wrong there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normspec.adapters.numpy.operators import IMPLEMENTATIONS
from normspec.conformance.cases.large import large_deck
from normspec.conformance.cases.sizes import PROFILES
from normspec.spec.operators import OPERATORS

from .runs import function, run

Array = np.ndarray
Call = Callable[..., Any]
SOUND: Call = IMPLEMENTATIONS["layer_norm"]().implementation().call
#: With more values in a group than the first and no more than the second, the functions below take another path: one
#: for all large calls, and one that ends before the longest of them.
PATHS = {"large": (300, 1 << 31), "middle": (130, 4000)}


def _length(x: Array, axes: tuple[int, ...]) -> int:
    return int(np.prod([x.shape[axis] for axis in axes]))


def _without_gamma(x, gamma, beta, *, eps, axes):
    y = SOUND(x, gamma, beta, eps=eps, axes=axes)
    return y if gamma is not None or beta is None else y - beta


def _without_beta(x, gamma, beta, *, eps, axes):
    return SOUND(x, gamma if beta is not None else None, beta, eps=eps, axes=axes)


def _two_axes(x, gamma, beta, *, eps, axes):
    y = SOUND(x, gamma, beta, eps=eps, axes=axes)
    return y if len(axes) == 1 else y[..., ::-1].copy()


def _no_eps(x, gamma, beta, *, eps, axes):
    return SOUND(x, gamma, beta, eps=0.0, axes=axes)


def _no_nan(x, gamma, beta, *, eps, axes):
    return SOUND(np.where(np.isnan(x), 0, x).astype(x.dtype), gamma, beta, eps=eps, axes=axes)


def _strides_ignored(x, gamma, beta, *, eps, axes):
    lies = x if x.flags.c_contiguous or min(x.strides) < 0 else np.lib.stride_tricks.as_strided(x, x.shape, _c(x))
    return SOUND(lies, gamma, beta, eps=eps, axes=axes)


def _c(x: Array) -> tuple[int, ...]:
    return np.empty(x.shape, x.dtype).strides


_BUFFERS: dict[tuple[object, ...], Array] = {}


def _buffer(x, gamma, beta, *, eps, axes):
    kept = _BUFFERS.setdefault((x.shape, x.dtype), np.empty_like(x))
    kept[...] = SOUND(x, gamma, beta, eps=eps, axes=axes)
    return kept


#: Mistakes, each with the requirement that it violates on large data.
MISTAKES = {
    "no beta without gamma": (_without_gamma, "CM-S1"),
    "no gamma without beta": (_without_beta, "CM-S1"),
    "two axes are read backwards": (_two_axes, "CM-S1"),
    "eps is left out": (_no_eps, "CM-S1"),
    "NaN is left out": (_no_nan, "CM-N3"),
    "strides are ignored": (_strides_ignored, "CM-V1"),
    "y lies in a buffer that is used again": (_buffer, "CM-P4"),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_another_path_is_caught(name: str, path: str) -> None:
    """A function that is wrong in one thing, on calls of some size alone, violates the requirement about it."""
    more, most = PATHS[path]
    wrong, requirement = MISTAKES[name]

    def call(x: Array, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]) -> Any:
        taken = wrong if more < _length(x, axes) <= most else SOUND
        return taken(x, gamma, beta, eps=eps, axes=axes)

    with np.errstate(all="ignore"):
        report = run(function("layer_norm", call), requirements=(requirement,), forward_only=True)
    assert [result.requirement for result in report.results if result.verdict == "fail"] == [requirement]


#: Ways to read a channel axis that hold where it is 1 or the last.
AXES = {
    "any negative axis is the last": lambda x, axis: x.ndim - 1 if axis < 0 else axis,
    "any axis but 1 is the last": lambda x, axis: 1 if axis == 1 else x.ndim - 1,
    "axis 0 is the second": lambda x, axis: axis or min(1, x.ndim - 1),
}


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (operator, name)
        for operator in ("batch_norm", "group_norm", "instance_norm")
        for name in AXES
        if operator == "batch_norm" or not name.startswith("axis 0")  # the axis of the samples in the other two
    ],
)
def test_a_channel_axis_is_tried_everywhere(operator: str, name: str) -> None:
    """A function that is right only for channels second or last is caught."""
    sound = IMPLEMENTATIONS[operator]().implementation().call

    def call(x: Array, *rest: Any, channel_axis: int, **settings: Any) -> Any:
        return sound(x, *rest, channel_axis=AXES[name](x, channel_axis), **settings)

    report = run(function(operator, call), requirements=("BN-F7", "GN-F7", "IN-F7", "BN-I1"), forward_only=True)
    assert not report.conforms


def test_one_sample_is_a_batch() -> None:
    """A function that takes a batch of one sample for inference is caught, though the sample has many positions."""
    sound = IMPLEMENTATIONS["batch_norm"]().implementation().call

    def call(x: Array, *rest: Any, training: bool, **settings: Any) -> Any:
        return sound(x, *rest, training=training and x.shape[0] > 1, **settings)

    report = run(function("batch_norm", call), requirements=("BN-F1",), forward_only=True)
    assert not report.conforms


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_has_large_cases(operator: str) -> None:
    """In every profile."""
    for profile in PROFILES:
        assert any(one.large for one in large_deck(operator, profile))
