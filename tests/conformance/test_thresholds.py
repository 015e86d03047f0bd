"""What a mistake of size counts is told: values of a group, or one of the extents that make them up."""

from __future__ import annotations

import numpy as np
import pytest

from normspec.adapters.targets import resolve

from .runs import VARIANT, function, run


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


def layer_norm_wrong_where(too_large):
    """A layer_norm whose y is 1 % too large where ``too_large(groups, values in a group)``."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        wide = x.astype(np.result_type(x.dtype, np.float32))
        d = wide - wide.mean(axes, keepdims=True)
        y = d / np.sqrt(np.square(d).mean(axes, keepdims=True) + wide.dtype.type(eps))
        n = int(np.prod([x.shape[axis] for axis in axes]))
        y = y * y.dtype.type(1.01 if too_large(x.size // max(n, 1), n) else 1)
        y = y if gamma is None else y * gamma
        return (y if beta is None else y + beta).astype(x.dtype)

    return layer_norm


def described(too_large):
    """The sentence about such a layer_norm."""
    target = resolve(layer_norm_wrong_where(too_large), op="layer_norm", framework="numpy")
    (cause,) = run(target, dtypes=("float32",), explain=True, forward_only=True).causes
    return cause.sentence


@pytest.mark.nightly
def test_a_limit_on_all_values_is_not_one_of_a_group():
    """Neither a number of groups nor of values in a group is named where their product counts."""
    assert "right up to 3000 values in x, wrong from" in described(lambda groups, n: groups * n > 3000)
    assert "right up to 700 values in a group, wrong from 701 on" in described(lambda groups, n: n > 700)
    assert "right up to 700 groups, wrong from 701 on" in described(lambda groups, n: groups > 700)


def test_a_small_case_refutes_a_limit():
    """Where one group alone is wrong too, no number of groups is named."""
    assert "groups" not in described(lambda groups, n: groups > 200 or n == 4)


@pytest.mark.nightly
def test_a_path_for_small_sizes_is_told_by_its_end():
    """What is wrong up to a size, and right from there on, is described by that size, of the extent that counts."""
    assert "right from 33 values in a group on, wrong up to 32" in described(lambda groups, n: n <= 32)
    assert "right from 5 groups on, wrong up to 4" in described(lambda groups, n: groups <= 4)
    assert "wrong up to" not in described(lambda groups, n: groups * n <= 500)


def test_values_that_show_a_mistake_are_swept_where_easy_ones_do_not():
    """The sweep's eps is too small to show: where eps is what is wrong, it is swept with an eps and groups that do."""
    sound = VARIANT["ln-two-pass"].build()

    def call(x, gamma, beta, *, eps, axes):
        n = int(np.prod([x.shape[axis] for axis in axes]))
        return sound.call(x, gamma, beta, eps=0.0 if n > 700 else eps, axes=axes)

    (cause,) = run(function("layer_norm", call), explain=True, forward_only=True).causes
    assert "right up to 700 values in a group, wrong from 701 on" in cause.sentence


def projected_over_one_more(x, gamma, g, *, eps, axes):
    """The gradients of an rms_norm whose projection is divided by n + 1 in groups of more than 64 values."""
    r = 1 / np.sqrt(np.square(x).mean(axes, keepdims=True) + x.dtype.type(eps))
    h = g if gamma is None else g * gamma
    n = int(np.prod([x.shape[axis] for axis in axes]))
    dx = r * (h - x * r * (h * x * r).sum(axes, keepdims=True) / x.dtype.type(n if n <= 64 else n + 1))
    return dx, None if gamma is None else (g * x * r).sum(tuple(range(x.ndim - len(axes))))


def test_an_error_that_becomes_small_is_not_called_right():
    """It is allowed from some size on, and there still."""

    def rms_norm(x, gamma, *, eps, axes):
        y = x / np.sqrt(np.square(x).mean(axes, keepdims=True) + x.dtype.type(eps))
        return y if gamma is None else y * gamma

    rms_norm.vjp = projected_over_one_more
    (cause,) = run(resolve(rms_norm, op="rms_norm", framework="numpy"), dtypes=("float32",), explain=True).causes
    assert "right up to 64 values in a group, wrong from 65 on, by less and less: no more than is" in cause.sentence


def instance_norm_in_chunks(x, gamma, beta, *, eps, channel_axis):
    """Takes the channel of a group from its place in a chunk of 4096 groups."""
    moved = np.moveaxis(x.astype(np.result_type(x.dtype, np.float32)), channel_axis, 1)
    rows = moved.reshape(moved.shape[0] * moved.shape[1], -1)
    d = rows - rows.mean(-1, keepdims=True)
    y = d / np.sqrt(np.square(d).mean(-1, keepdims=True) + d.dtype.type(eps))
    channel = np.arange(len(rows)) % 4096 % moved.shape[1]
    y = y if gamma is None else y * gamma[channel][:, None]
    y = y if beta is None else y + beta[channel][:, None]
    return np.moveaxis(y.reshape(moved.shape).astype(x.dtype), 1, channel_axis)


def test_a_limit_is_not_told_twice_in_what_is_as_many():
    """In the sweep of groups one sample has as many channels."""
    target = resolve(instance_norm_in_chunks, op="instance_norm", framework="numpy")
    report = run(target, requirements=["CM-S1", "IN-F1"], explain=True, forward_only=True)
    assert [cause.sentence for cause in report.causes] == ["y is right up to 4096 groups, wrong from 4097 on."]
