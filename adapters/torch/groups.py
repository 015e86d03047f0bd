"""The values of a group_norm call in float64, for predicting its known violations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..known import Failure


class Groups:
    """A call of group_norm in float64; every array is (samples, groups, channels of a group, positions)."""

    def __init__(self, failure: Failure, eps: float) -> None:
        assert failure.g is not None
        self.axis, self.count = failure.settings["channel_axis"] % failure.g.ndim, failure.settings["groups"]
        self.x, self.g = self.by_group(failure.inputs["x"]), self.by_group(failure.g)
        self.gamma = self.by_channel(failure.inputs["gamma"], 1.0)
        self.beta = self.by_channel(failure.inputs["beta"], 0.0)
        with np.errstate(all="ignore"):
            self.mu = mean(self.x)
            self.d = self.x - self.mu
            self.r = 1 / np.sqrt(mean(self.d**2) + eps)
        self.size = np.abs(self.x) + np.abs(self.mu)
        self.h = self.gamma * self.g

    def by_group(self, values: Any) -> Any:
        """An array of x's shape, as (samples, groups, channels of a group, positions)."""
        moved = np.moveaxis(np.asarray(values, np.float64), self.axis, 1)
        return moved.reshape(moved.shape[0], self.count, moved.shape[1] // self.count, -1)

    def by_channel(self, values: Any, absent: float) -> Any:
        """A parameter, or ``absent`` if it is None, shaped to broadcast against x."""
        given = np.asarray(absent if values is None else values, np.float64)
        return np.broadcast_to(given, (self.x.shape[1] * self.x.shape[2],)).reshape(1, self.count, -1, 1)

    def back(self, failure: Failure, *values: Any) -> list[Any]:
        """Values in the failed output's shape: x's shape, or for a parameter's gradient the sums by channel."""
        assert failure.got is not None
        shape = failure.got.shape
        whole = [np.broadcast_to(one, self.x.shape) for one in values]
        if len(shape) == 1:
            return [one.sum(axis=(0, 3)).reshape(-1) for one in whole]
        moved = [shape[0], shape[self.axis], *(n for axis, n in enumerate(shape) if axis not in (0, self.axis))]
        return [np.moveaxis(one.reshape(moved), 1, self.axis) for one in whole]


def mean(values: Any) -> Any:
    """The mean of each group."""
    return values.mean(axis=(2, 3), keepdims=True)
