"""Faults of the axes: what is normalised together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array
from ...spec.layout import Layout
from .registry import fault, issue


def mean_over(terms: Array, layout: Layout, axes: tuple[int, ...]) -> Array:
    """The mean of rows over axes of the array they came from, repeated to the shape of the rows."""
    whole = layout.back(terms)
    count = terms.dtype.type(max(math.prod(whole.shape[axis] for axis in axes), 1))
    mean = np.add.reduce(whole, axis=axes, keepdims=True) / count
    return layout.rows(np.broadcast_to(mean, whole.shape))


@fault("over-last-axis-only", ln="LN-F7")
class OverLastAxisOnly(Groups):
    """Normalises over the last axis alone, whatever is asked for."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, (-1,))


@fault("over-all-but-first", ln="LN-F7")
class OverAllButFirst(Groups):
    """Normalises over everything but the first axis, whatever is asked for."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, tuple(range(1, len(self.shape))) or (0,))


@fault("over-all-axes", ln="LN-F7", pr="PR-F5", po="PO-F5")
class OverAllAxes(Groups):
    """Normalises over the whole array at once."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, tuple(range(len(self.shape))))


@fault("over-batch", ln="LN-F7", pr="PR-F5", po="PO-F5")
class OverBatch(Groups):
    """Normalises over the first axis, as batch normalisation would."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, (0,))


@fault("single-steps-joined", ln="LN-F7", pr="PR-F5", po="PO-F5", apart=("gn", "in"))
class SingleStepsJoined(Groups):
    """Normalises sequences of a single step together, as if the axis of length 1 were not there."""

    def row_mean(self, terms: Array) -> Array:
        if len(self.shape) != 3 or self.shape[1] != 1:
            return super().row_mean(terms)
        return mean_over(terms, self.layout, (0, 2))


@fault("axis-found-by-size", ln="LN-F7", apart=("gn", "in"))
class AxisFoundBySize(Groups):
    """Looks for the normalised axes by their sizes, from the front."""

    def row_mean(self, terms: Array) -> Array:
        count, shape = len(self.axes), self.shape
        start = next(i for i in range(len(shape)) if shape[i : i + count] == shape[len(shape) - count :])
        return mean_over(terms, self.layout, tuple(range(start, start + count)))


@fault("dimension-not-kept", ln="LN-F7", apart=("gn", "in"))
class DimensionNotKept(Groups):
    """Keeps no dimension of the statistics of a cube, so that each row is normalised by those of others."""

    def row_mean(self, terms: Array) -> Array:
        mean = super().row_mean(terms)
        if len(self.shape) != 3 or len(self.axes) != 1 or len(set(self.shape)) != 1:
            return mean  # elsewhere it would not broadcast
        return np.tile(mean.reshape(self.shape[:2]), (self.shape[0], 1))


class ChannelRows(BatchNorm):
    """Means over other axes than all that are not the channels'."""

    def others(self) -> tuple[int, ...]:
        """The axes that are not the channels', that of the samples first."""
        return self.layout.after

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        # The statistics come out one a value; a kernel would keep one a channel.
        return super().updated(old, new[:, :1], momentum)


@fault("over-batch-axis-only", bn="BN-F7")
class OverBatchAxisOnly(ChannelRows):
    """Normalises over the batch axis alone, each position on its own."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, self.others()[:1] or (0,))


@fault("over-positions-only", bn="BN-F7")
class OverPositionsOnly(ChannelRows):
    """Normalises each sample's positions on their own, as instance normalisation does, where there are any."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, self.others()[1:] or self.others())


class ExchangedAxis(Groups):
    """Takes another axis than the given one for the channels, where the two have the same size."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        """The axis taken instead."""
        raise NotImplementedError

    def begin(self, x: Array, settings: Mapping[str, Any]) -> None:
        super().begin(x, settings)
        channel_axis = settings["channel_axis"]
        other = self.other_axis(x, channel_axis)
        if x.shape[other] == x.shape[channel_axis] and other not in self.layout.before:
            self.layout = Layout.of(self.operator, x.shape, {**settings, "channel_axis": other})


@fault(
    "channel-axis-found-by-size",
    bn="BN-F7",
    gn="GN-F7",
    in_="IN-F7",
    sources=issue("intel/ipex-llm#2981", "ROCm/pytorch#1561"),
)
class ChannelAxisFoundBySize(ExchangedAxis):
    """Looks for the channel axis by the number of channels, from the front."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return x.shape.index(x.shape[channel_axis], len(self.layout.before))


@fault("negative-channel-axis-misread", bn="BN-F7", gn="GN-F7", in_="IN-F7")
class NegativeChannelAxisMisread(ExchangedAxis):
    """Counts a negative channel axis from one too far back, where the sizes allow it."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return (channel_axis - 1) % x.ndim if channel_axis < 0 else channel_axis


@fault("channel-axis-always-one", bn="BN-F7", gn="GN-F7", in_="IN-F7", sources=issue("chainer/chainer#8497"))
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
        return mean_over(terms, self.layout, (self.channel_axis,)) if len(self.shape) == 2 else super().row_mean(terms)


@fault("channel-axis-modulo-four", bn="BN-F7", gn="GN-F7", in_="IN-F7")
class ChannelAxisModuloFour(ExchangedAxis):
    """Counts a negative channel axis from the end of four axes, also where x has five."""

    def other_axis(self, x: Array, channel_axis: int) -> int:
        return channel_axis % min(x.ndim, 4) if channel_axis < 0 else channel_axis
