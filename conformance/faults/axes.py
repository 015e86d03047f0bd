"""Faults of the axes: what is normalised together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.layer_norm import LayerNorm
from ...adapters.numpy.operators.rows import Array
from ...spec.layout import Layout
from .registry import fault, issue


def mean_over(terms: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """The mean of rows over axes of the array they came from, repeated to the shape of the rows."""
    whole = terms.reshape(shape)
    count = terms.dtype.type(max(math.prod(shape[axis] for axis in axes), 1))
    mean = np.add.reduce(whole, axis=axes, keepdims=True) / count
    return np.broadcast_to(mean, shape).reshape(terms.shape)


@fault("over-last-axis-only", ln="LN-F7")
class OverLastAxisOnly(LayerNorm):
    """Normalises over the last axis alone, whatever axes are given."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.shape, (-1,))


@fault("over-all-but-first", ln="LN-F7")
class OverAllButFirst(LayerNorm):
    """Normalises over everything but the first axis, whatever axes are given."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.shape, tuple(range(1, len(self.shape))) or (0,))


@fault("over-all-axes", ln="LN-F7", pr="PR-F5", po="PO-F5")
class OverAllAxes(Groups):
    """Normalises over the whole array at once."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.shape, tuple(range(len(self.shape))))


@fault("over-batch", ln="LN-F7", pr="PR-F5", po="PO-F5")
class OverBatch(Groups):
    """Normalises over the first axis, as batch normalisation would."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.shape, (0,))


@fault("axis-found-by-size", ln="LN-F7")
class AxisFoundBySize(LayerNorm):
    """Looks for the normalised axes by their sizes, from the front."""

    def row_mean(self, terms: Array) -> Array:
        count, shape = len(self.axes), self.shape
        start = next(i for i in range(len(shape)) if shape[i : i + count] == shape[len(shape) - count :])
        return mean_over(terms, shape, tuple(range(start, start + count)))


class ChannelRows(BatchNorm):
    """Means over other axes of the rows (channel, and the others in order)."""

    def moved_shape(self) -> tuple[int, ...]:
        """The shape of the array with its channel axis in front, as the rows hold it."""
        axis = self.channel_axis
        return (self.shape[axis], *self.shape[:axis], *self.shape[axis + 1 :])

    def training_mean(self, terms: Array, axes: tuple[int, ...]) -> Array:
        """The mean over axes of the moved array."""
        return mean_over(terms, self.moved_shape(), axes)

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        # The statistics come out one a value; a kernel would keep one a channel.
        return super().updated(old, new[:, :1], momentum)


@fault("over-batch-axis-only", bn="BN-F7")
class OverBatchAxisOnly(ChannelRows):
    """Normalises over the batch axis alone, each position on its own."""

    def row_mean(self, terms: Array) -> Array:
        return self.training_mean(terms, (1,) if len(self.shape) > 1 else (0,))


@fault("over-positions-only", bn="BN-F7")
class OverPositionsOnly(ChannelRows):
    """Normalises each sample's positions on their own, as instance normalisation does, where there are any."""

    def row_mean(self, terms: Array) -> Array:
        others = tuple(range(2, len(self.shape)))
        return self.training_mean(terms, others or tuple(range(1, len(self.shape))))


class ExchangedAxis(BatchNorm):
    """Takes another axis than the given one for the channels, where the two have the same size."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        """The axis taken instead."""
        raise NotImplementedError

    def begin(self, x: Array, settings: Mapping[str, Any]) -> None:
        super().begin(x, settings)
        channel_axis = settings["channel_axis"]
        other = self.other_axis(x, channel_axis)
        if x.shape[other] == x.shape[channel_axis]:
            self.layout = Layout.channels(x.shape, other)


@fault("channel-axis-found-by-size", bn="BN-F7", sources=issue("intel/ipex-llm#2981", "ROCm/pytorch#1561"))
class ChannelAxisFoundBySize(ExchangedAxis):
    """Looks for the channel axis by the number of channels, from the front."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return x.shape.index(x.shape[channel_axis])


@fault("negative-channel-axis-misread", bn="BN-F7")
class NegativeChannelAxisMisread(ExchangedAxis):
    """Counts a negative channel axis from one too far back, where the sizes allow it."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return (channel_axis - 1) % x.ndim if channel_axis < 0 else channel_axis


@fault("channel-axis-always-one", bn="BN-F7", sources=issue("chainer/chainer#8497"))
class ChannelAxisAlwaysOne(ExchangedAxis):
    """Takes axis 1 for the channels where it has as many values as there are channels."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return min(1, x.ndim - 1)


@fault("over-channels", bn="BN-F7")
class OverChannels(ExchangedAxis):
    """Normalises over the channels where there are as many of them as samples."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return 0 if channel_axis % x.ndim else x.ndim - 1


@fault("layer-norm-instead", bn="BN-L12")
class LayerNormInstead(ChannelRows):
    """Normalises each sample over its channels where x has two axes."""

    def row_mean(self, terms: Array) -> Array:
        return self.training_mean(terms, (0,)) if len(self.shape) == 2 else super().row_mean(terms)
