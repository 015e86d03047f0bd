"""Layouts that a function misreads or refuses, as its cause tells them."""

from __future__ import annotations

import numpy as np
import pytest

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
