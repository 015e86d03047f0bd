"""What goes to the wrong channel: the parameters of another one in y, and the terms of another one's sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .runs import VARIANT, function, run

Array = np.ndarray
SOUND = VARIANT["in-two-pass"].build()


def _described(call: Any, vjp: Any) -> str:
    """What is said of an instance norm."""
    with np.errstate(all="ignore"):
        report = run(function("instance_norm", call, vjp=vjp), requirements={"IN-F5", "IN-G2", "IN-F1"}, explain=True)
    (cause,) = report.causes
    assert not cause.faults
    return cause.sentence


def _repeated(value: Array, samples: int) -> Array:
    """A parameter for each channel of each sample, in the order of a loop over samples inside one over channels."""
    return np.repeat(value, samples).reshape(samples, -1)


def _with_parameters(of_channels: Callable[[Array, int], Array]) -> Any:
    """An instance norm that takes its parameters so, for each channel of each sample."""

    def call(x: Array, gamma: Array | None, beta: Array | None, *, eps: float, channel_axis: int) -> Array:
        y = np.moveaxis(SOUND.call(x, None, None, eps=eps, channel_axis=channel_axis), channel_axis, -1)
        shape = (len(x), *[1] * (x.ndim - 2), -1)
        y = y if gamma is None else y * of_channels(gamma, len(x)).reshape(shape)
        y = y if beta is None else y + of_channels(beta, len(x)).reshape(shape)
        return np.moveaxis(y, -1, channel_axis).astype(x.dtype)

    return call


def test_parameters_of_another_channel_are_told():
    """`repeat_interleave` in place of `repeat`, where each channel of each sample is one of a batch's channels."""
    words = "each wrong value has gamma and beta of another channel"
    assert words in _described(_with_parameters(_repeated), SOUND.vjp)


def _with_sums(added: Callable[[Array], Array]) -> Any:
    """A derivative of instance norm whose dgamma and dbeta are made of the sums of each sample and channel."""

    def vjp(x: Array, gamma: Any, beta: Any, g: Array, **settings: Any) -> tuple[Any, ...]:
        dx, *given = SOUND.vjp(x, gamma, beta, g, **settings)
        each = [SOUND.vjp(x[[k]], gamma, beta, g[[k]], **settings)[1:] for k in range(len(x))]
        sums = [added(np.array([one[place] for one in each])) for place in range(2) if given[place] is not None]
        return (dx, *(None if one is None else sums.pop(0).astype(x.dtype) for one in given))

    return vjp


@pytest.mark.parametrize(
    ("added", "told"),
    [
        (lambda sums: sums.reshape(-1).reshape(sums.shape[::-1]).sum(1), True),
        (lambda sums: sums.sum(0) + np.sign(sums.sum(0)), False),
    ],
    ids=["read as (C, N)", "too large"],
)
def test_terms_of_sums_that_went_to_another_channel_are_told(added, told):
    """Sums over samples and positions kept as (N, C) and read as (C, N) have the right total; others have not."""
    sentence = _described(SOUND.call, _with_sums(added))
    words = "the values add up to the right total, as if terms of the sums went to another channel"
    assert (words in sentence) is told
