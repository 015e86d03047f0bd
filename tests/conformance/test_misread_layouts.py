"""Layouts that a function misreads or refuses, as its cause tells them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .runs import VARIANT, function, run, verdicts
from .test_two_mistakes import diagnosed, layer_norm_of

_RIGHT = "every plain call that was tried is right."


def guarded(x, gamma, beta, *, eps, axes):
    """The guard of many kernels."""
    if not x.flags.c_contiguous:
        raise ValueError("x must be contiguous")
    return layer_norm_of(x, gamma, beta, eps, axes)


def reads_backwards(x, gamma, beta, *, eps, axes):
    """Takes a negative stride for a positive one."""
    return layer_norm_of(x[..., ::-1] if x.strides[-1] < 0 else x, gamma, beta, eps, axes)


def of_three_axes(x, gamma, beta, *, eps, axes):
    """Misreads one layout, which only an x of three axes or more can have."""
    misread = x.ndim == 3 and x.flags.c_contiguous is False and x.swapaxes(0, 1).flags.c_contiguous and x.shape[0] > 1
    return layer_norm_of(x * 2 + 1 if misread else x, gamma, beta, eps + 1 if misread else eps, axes)


@pytest.mark.parametrize(
    ("mistaken", "sentence"),
    [
        (
            guarded,
            "The call raises ValueError: x must be contiguous, where x is not contiguous in memory, and returns where"
            f" it is; {_RIGHT}",
        ),
        (
            reads_backwards,
            "y is wrong where x is stored with a negative stride, and right where it is contiguous or in most other"
            f" layouts; {_RIGHT}",
        ),
        (
            of_three_axes,
            "y is wrong where x is stored with the axes before the last reversed, and right where it is contiguous or"
            f" in most other layouts; {_RIGHT}",
        ),
    ],
)
@np.errstate(all="ignore")
def test_a_layout_is_right_only_where_it_was_tried(mistaken, sentence):
    """A layout that no case can have is not told as right."""
    (cause,) = diagnosed(mistaken).causes
    assert cause.sentence == sentence


@pytest.mark.parametrize("lost", ["", "gamma", "beta"])
def test_images_that_lie_channels_last_also_come_without_parameters(lost: str) -> None:
    """CM-V1: a path for such an x that applies one parameter only beside the other."""
    made = VARIANT["gn-plain"].build()

    def call(x: np.ndarray, gamma: Any, beta: Any, *, eps: float, groups: int, channel_axis: int) -> np.ndarray:
        last = x.ndim == 4 and not x.flags.c_contiguous and x.transpose(0, 2, 3, 1).flags.c_contiguous
        if last and lost == "gamma" and beta is None:
            gamma = None
        if last and lost == "beta" and gamma is None:
            beta = None
        return made.call(x, gamma, beta, eps=eps, groups=groups, channel_axis=channel_axis)

    report = run(function("group_norm", call, vjp=made.vjp), requirements={"CM-V1"}, profile="quick")
    assert verdicts(report) == {"CM-V1": "fail" if lost else "pass"}
