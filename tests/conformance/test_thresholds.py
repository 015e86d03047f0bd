"""What a mistake of size counts is told: values of a group, or one of the extents that make them up."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.targets import resolve

from .runs import run


def group_norm_wrong_where(too_large):
    """A group_norm whose variance is 1 % too large where ``too_large(channels of a group, positions)``."""

    def group_norm(x, gamma, beta, *, eps, groups, channel_axis):
        channels_second = np.moveaxis(x, channel_axis, 1)
        samples, channels, *positions = channels_second.shape
        wide = channels_second.astype(np.result_type(x.dtype, np.float32))
        rows = wide.reshape(samples, groups, channels // groups * int(np.prod(positions)))
        d = rows - rows.mean(-1, keepdims=True)
        variance = np.square(d).mean(-1, keepdims=True)
        if too_large(channels // groups, int(np.prod(positions))):
            variance = variance * variance.dtype.type(1.01)
        y = (d / np.sqrt(variance + variance.dtype.type(eps))).reshape(channels_second.shape)
        along_channels = (-1, *(1 for _ in positions))
        y = y if gamma is None else y * gamma.reshape(along_channels)
        y = y if beta is None else y + beta.reshape(along_channels)
        return np.moveaxis(y.astype(x.dtype), 1, channel_axis)

    return group_norm


@pytest.mark.parametrize(
    ("too_large", "words"),
    [
        (lambda channels, positions: channels * positions > 3000, "right up to 3000 values in a group, wrong from"),
        (lambda channels, positions: channels > 1500, "right up to 1500 channels in a group, wrong from 1501 on"),
        (lambda channels, positions: positions > 1500, "right up to 1500 positions, wrong from 1501 on"),
    ],
)
def test_what_is_counted(too_large, words):
    """A limit on values shows in channels and positions alike; a limit on either shows in that one."""
    target = resolve(group_norm_wrong_where(too_large), op="group_norm", framework="numpy")
    found = run(target, dtypes=("float32",), explain=True, forward_only=True).causes
    assert len(found) == 1 and words in found[0].sentence
