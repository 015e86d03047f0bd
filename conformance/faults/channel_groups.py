"""Faults of the groups of channels: which channels are normalised together, and whose gamma is whose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...adapters.numpy.operators.group_norm import GroupNorm
from ...adapters.numpy.operators.groups import Arrays as Named
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull
from ...adapters.numpy.operators.staged import Arrays
from .axes import mean_over
from .registry import fault, issue


class Channels(Groups):
    """The base that takes samples apart."""

    def of_samples(self, rows: Array) -> Array:
        """Rows as (samples, groups, values)."""
        return rows.reshape(self.layout.repeats, self.layout.blocks, self.layout.size)


class InterleavedMeans(Channels):
    """The base that can take channel c for one of group c mod G."""

    def interleaved(self, rows: Array) -> Array:
        """Rows whose channel c is one of group c mod G."""
        whole = rows.reshape(self.layout.repeats, self.layout.width, self.layout.blocks, self.layout.positions)
        return whole.transpose(0, 2, 1, 3).reshape(rows.shape)

    def interleaved_back(self, rows: Array) -> Array:
        """Rows of such groups as those of consecutive channels."""
        whole = rows.reshape(self.layout.repeats, self.layout.blocks, self.layout.width, self.layout.positions)
        return whole.transpose(0, 2, 1, 3).reshape(rows.shape)


@fault("interleaved", gn="GN-F7", sources=("https://github.com/ml-explore/mlx/pull/3653",))
class Interleaved(InterleavedMeans):
    """Normalises together the channels that are the same modulo the number of groups."""

    def row_mean(self, terms: Array) -> Array:
        mean = super().row_mean(self.interleaved(terms))
        return self.interleaved_back(np.broadcast_to(mean, terms.shape))


@fault(
    "interleaved-in-dgamma",
    gn="GN-G2",
    kind="gradient",
    sources=("https://github.com/tenstorrent/tt-metal/pull/56202",),
)
class InterleavedInDgamma(InterleavedMeans):
    """Uses for dgamma the mean and the reciprocal root of group c mod G for channel c."""

    def gamma_gradient(self, p: Pull) -> Array:
        of = [np.broadcast_to(one, p.x.shape) for one in (p.statistics.mean, p.statistics.rstd)]
        mean, rstd = (self.interleaved_back(one) for one in of)
        return self.parameter_sum(p.g * ((p.x - mean) * rstd))


@fault("interleaved-in-backward", gn="GN-G1", kind="gradient")
class InterleavedInBackward(InterleavedMeans):
    """Takes the means in dx over the channels that are the same modulo the number of groups."""

    def input_gradient(self, p: Pull) -> Array:
        mean = [
            self.interleaved_back(np.broadcast_to(self.row_mean(self.interleaved(one)), one.shape))
            for one in (p.h, p.h * p.xhat)
        ]
        return p.statistics.rstd * (p.h - mean[0] - p.xhat * mean[1])


@fault("reshaped-without-transposing", gn="GN-F7", sources=issue("tensorflow/addons#751"))
class ReshapedWithoutTransposing(Channels):
    """Divides each sample into groups as it lies in memory, whatever axis has the channels."""

    def row_mean(self, terms: Array) -> Array:
        whole = self.layout.back(terms)
        mean = super().row_mean(whole.reshape(terms.shape))
        return self.layout.rows(np.broadcast_to(mean, terms.shape).reshape(whole.shape))


@fault("each-channel-alone", gn="GN-F7")
class EachChannelAlone(Channels):
    """Normalises each channel alone, as instance normalisation does, where there are positions."""

    def row_mean(self, terms: Array) -> Array:
        return mean_over(terms, self.layout, self.layout.after) if self.layout.after else super().row_mean(terms)


@fault("one-group-as-instance", gn="GN-F7", sources=issue("NVIDIA/TensorRT#4756"))
class OneGroupAsInstance(EachChannelAlone):
    """Normalises each channel alone where one group is asked for."""

    def row_mean(self, terms: Array) -> Array:
        return super().row_mean(terms) if self.layout.blocks == 1 else Channels.row_mean(self, terms)


@fault("one-group-as-rows", gn="GN-F1")
class OneGroupAsRows(Channels):
    """Normalises the channels at each position alone where one group is asked for and they are last of three axes."""

    def row_mean(self, terms: Array) -> Array:
        last = len(self.shape) == 3 and self.channel_axis % 3 == 2
        if self.layout.blocks > 1 or not last:
            return super().row_mean(terms)
        whole = self.layout.back(terms)
        return self.layout.rows(np.broadcast_to(whole.mean(-1, keepdims=True), whole.shape))


@fault("whole-vectors", gn="GN-F7")
class WholeVectors(Channels):
    """Takes the mean of a group over whole vectors of eight channels where the channels lie last: also over neighbours.

    A group of up to eight channels is read value by value.
    """

    def row_mean(self, terms: Array) -> Array:
        layout = self.layout
        if layout.parameter[0] != len(self.shape) - 1 or layout.width <= 8 or layout.width % 8 == 0:
            return super().row_mean(terms)
        channels, means = layout.stretches(terms), []
        for begin in range(0, layout.parameters, layout.width):
            vectors = slice(begin // 8 * 8, -(-(begin + layout.width) // 8) * 8)
            means.append(channels[:, vectors].mean(axis=(1, 2)))
        return np.stack(means, axis=1).reshape(-1, 1).astype(terms.dtype)


@fault("groups-over-batch", gn="GN-F7", in_="IN-F7")
class GroupsOverBatch(Channels):
    """Normalises a group of channels over all samples at once."""

    def row_mean(self, terms: Array) -> Array:
        mean = self.of_samples(super().row_mean(terms) + np.zeros_like(terms)).mean(axis=0, keepdims=True)
        return np.broadcast_to(mean, (self.layout.repeats, *mean.shape[1:])).reshape(terms.shape)


@fault(
    "parameters-by-group",
    gn="GN-F5",
    sources=(
        *issue("onnx/onnx#5466", "onnx/onnx#5284", "apache/mxnet#17139"),
        "https://github.com/apache/mxnet/pull/18199",
    ),
)
class ParametersByGroup(Channels):
    """Uses one gamma and one beta for each group, the first ones."""

    def parameter(self, array: Array | None, role: str) -> Array | None:
        if array is not None and role in ("gamma", "beta"):
            array = np.repeat(array[: self.layout.blocks], self.layout.width) if self.layout.blocks else array
        return super().parameter(array, role)


@fault("gamma-along-axis-one", gn="GN-F5", in_="IN-F5", sources=issue("gmalivenko/onnx2keras#88"))
class GammaAlongAxisOne(Channels):
    """Multiplies by gamma along axis 1 where that has as many values as there are channels."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        layout = self.layout
        if gamma is not None and self.shape[1] == layout.parameters and layout.count:
            of_channels = layout.stretches(np.broadcast_to(gamma, xhat.shape))[0, :, 0]
            along = [-1 if axis == 1 else 1 for axis in range(len(self.shape))]
            gamma = layout.rows(np.broadcast_to(of_channels.reshape(along), self.shape))
        return super().affine(xhat, gamma, beta)


@fault(
    "dgamma-over-first-row",
    gn="GN-G2",
    in_="IN-G2",
    kind="gradient",
    sources=(*issue("linkedin/Liger-Kernel#883"), "https://github.com/linkedin/Liger-Kernel/pull/1376"),
)
class DgammaOverFirstRow(Channels):
    """Sums dgamma over as many positions as the last axis has: over one row of a map."""

    def gamma_gradient(self, p: Pull) -> Array:
        layout = self.layout
        if not layout.after:
            return super().gamma_gradient(p)
        kept = np.arange(layout.positions) < self.shape[layout.after[-1]]
        terms = layout.stretches(p.g * p.xhat) * kept
        return self.parameter_sum(terms.reshape(layout.count, layout.size))


@fault("dgamma-of-group", gn="GN-G2", kind="gradient")
class DgammaOfGroup(GroupNorm):
    """Gives every channel of a group the mean of their dgamma."""

    def gamma_gradient(self, p: Pull) -> Array:
        own = super().gamma_gradient(p).reshape(-1)
        width = self.layout.width
        apart = own.reshape(-1, width)
        return np.repeat(apart.mean(axis=1), width)[:, None]


@fault(
    "no-positions-refused",
    gn="CM-T1",
    kind="argument",
    sources=issue("apple/coremltools#2047"),
)
class NoPositionsRefused(Groups):
    """Raises for an x of two axes."""

    def before(self, stage: str, arrays: Arrays) -> None:
        if arrays[0] is not None and arrays[0].ndim == 2:
            raise IndexError("tuple index out of range")


@fault(
    "groups-rounded-down", gn="CM-A1", kind="argument", sources=("https://github.com/PaddlePaddle/Paddle/pull/35644",)
)
class GroupsRoundedDown(GroupNorm):
    """Takes fewer groups where their number does not divide that of the channels."""

    def begun(self, arrays: tuple[Any, ...], settings: Mapping[str, Any], *more: str) -> Named:
        channels, groups = arrays[0].shape[settings["channel_axis"]], settings["groups"]
        while channels % groups:
            groups -= 1
        return super().begun(arrays, {**settings, "groups": groups}, *more)
