"""Faults that show at certain sizes: tails, limits of blocks and of counters."""

from __future__ import annotations

import math

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from .registry import fault, issue


@fault("first-1024-values", ln="CM-S1", bn="CM-S1", pr="CM-S1", kind="size")
class First1024Values(RowSteps):
    """Takes mean and variance from the first 1024 values."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x[:, :1024], eps)


@fault(
    "vector-tail-dropped",
    ln="CM-S1",
    bn="CM-S1",
    kind="size",
    sources=issue("flashinfer-ai/flashinfer#634", "microsoft/onnxruntime#15054"),
)
class VectorTailDropped(RowSteps):
    """Sums in vectors of four and forgets the values after the last whole one, in rows longer than 16."""

    def row_sum(self, terms: Array) -> Array:
        count = terms.shape[1]
        return super().row_sum(terms[:, : count // 4 * 4] if count > 16 else terms)


@fault("last-vector-dropped", ln="CM-S1", bn="CM-S1", kind="size")
class LastVectorDropped(RowSteps):
    """Takes long rows that are whole vectors of eight by a path of their own, which forgets the last vector."""

    def row_sum(self, terms: Array) -> Array:
        count = terms.shape[1]
        return super().row_sum(terms[:, :-8] if count >= 1024 and count % 8 == 0 else terms)


@fault("width-4096-misread", ln="CM-S1", kind="size")
class Width4096Misread(RowSteps):
    """Has a kernel of its own for rows of exactly 4096 values, which takes mean and variance from the first half."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x[:, :2048] if x.shape[1] == 4096 else x, eps)


@fault("output-tail-dropped", ln="CM-S1", bn="CM-S1", kind="size")
class OutputTailDropped(RowSteps):
    """Leaves the values after the last whole block of 64 unwritten, in rows longer than that."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        y = super().output(x, s, gamma, beta)
        if x.shape[1] > 64:
            y[:, x.shape[1] // 64 * 64 :] = 0
        return y


@fault("tail-in-next-row", ln="CM-S1", bn="CM-S1", kind="size")
class TailInNextRow(RowSteps):
    """Writes the last value of a group into the next one too, where groups are odd in length and longer than 16."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        y = super().output(x, s, gamma, beta)
        if x.shape[1] > 16 and x.shape[1] % 2:
            y[1:, 0] = y[:-1, -1]
        return y


@fault(
    "padded-lanes-in-variance",
    ln="CM-S1",
    bn="CM-S1",
    kind="size",
    apart=("rm",),
    sources=issue("linkedin/Liger-Kernel#518", "linkedin/Liger-Kernel#519", "triton-lang/triton#9838"),
)
class PaddedLanesInVariance(RowSteps):
    """Pads rows with zeros to a power of two and lets them enter the variance as deviations of -mean."""

    def variance(self, x: Array, mean: Array) -> Array:
        count = x.shape[1]
        padding = (1 << max(count - 1, 0).bit_length()) - count
        return super().variance(x, mean) + x.dtype.type(padding / max(count, 1)) * (mean * mean)


@fault("mean-of-block-means", ln="CM-S1", bn="CM-S1", kind="size", sources=issue("pytorch/pytorch#36382"))
class MeanOfBlockMeans(RowSteps):
    """Averages the means of blocks of 64 without weighing the last, shorter one."""

    def row_mean(self, terms: Array) -> Array:
        if terms.shape[1] <= 64:
            return super().row_mean(terms)
        mean = super().row_mean
        means = [mean(terms[:, start : start + 64]) for start in range(0, terms.shape[1], 64)]
        return np.mean(np.concatenate(means, axis=1), axis=1, keepdims=True)


@fault("parts-merged-without-means", everywhere="CM-S1", kind="size", apart=("rm",))
class PartsMergedWithoutMeans(RowSteps):
    """Takes the variance of more than 4096 values from those of two halves, as if both had the same mean."""

    def variance(self, x: Array, mean: Array) -> Array:
        count = x.shape[1]
        if count <= 4096:
            return super().variance(x, mean)
        first, second = x[:, : count // 2], x[:, count // 2 :]
        variance = super().variance
        within = variance(first, self.row_mean(first)) * first.shape[1]
        return (within + variance(second, self.row_mean(second)) * second.shape[1]) / x.dtype.type(count)


@fault("count-in-sixteen-bits", ln="CM-S1", bn="CM-S1", kind="size")
class CountInSixteenBits(RowSteps):
    """Keeps the number of values in a signed 16-bit integer."""

    def row_mean(self, terms: Array) -> Array:
        count = (terms.shape[1] + 2**15) % 2**16 - 2**15
        return self.row_sum(terms) / terms.dtype.type(count)


@fault(
    "groups-beyond-65535",
    ln="CM-S1",
    kind="size",
    sources=issue("NVIDIA/apex#411", "PaddlePaddle/Paddle#31144", "ggml-org/llama.cpp#28175"),
)
class GroupsBeyond65535(Groups):
    """Leaves the groups from the 65,536th on unwritten."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        y = super().output(x, s, gamma, beta)
        y[65535:] = 0
        return y


@fault("values-beyond-65535", bn="CM-S1", kind="size", sources=issue("pytorch/pytorch#2917", "pytorch/pytorch#16998"))
class ValuesBeyond65535(BatchNorm):
    """Leaves the values of a channel from the 65,536th on unwritten."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        y = super().output(x, s, gamma, beta)
        y[:, 65535:] = 0
        return y


@fault("channels-beyond-1024", bn="CM-S1", kind="size")
class ChannelsBeyond1024(BatchNorm):
    """Uses the reciprocal root of channel c - 1024 from the 1,025th channel on."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        r = super().rstd(variance, eps)
        return r[np.arange(len(r)) % 1024]


@fault("dx-beyond-4096", ln="CM-S1", kind="size")
class DxBeyond4096(Groups):
    """Leaves dx at zero from the 4,097th value of a group on."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        dx[:, 4096:] = 0
        return dx


@fault("dgamma-tail-groups", ln="CM-S1", kind="size", sources=issue("BobMcDear/attorch#18"))
class DgammaTailGroups(Groups):
    """Sums the gradients of parameters in blocks of 32 terms and drops the last, shorter block."""

    def parameter_sum(self, terms: Array) -> Array:
        shared = self.by_parameter(terms)
        return self.shared_sum(shared[:, : shared.shape[1] // 32 * 32] if shared.shape[1] > 32 else shared)


@fault("dgamma-tail-values", bn="CM-S1", kind="size", sources=issue("BobMcDear/attorch#18"))
class DgammaTailValues(BatchNorm):
    """Sums dgamma and dbeta in blocks of 64 values and drops the last, shorter block."""

    def parameter_sum(self, terms: Array) -> Array:
        return super().parameter_sum(terms[:, : terms.shape[1] // 64 * 64] if terms.shape[1] > 64 else terms)


@fault("dx-between-256-and-512", ln="CM-S1", bn="CM-S1", kind="size")
class DxBetween256And512(RowSteps):
    """Leaves the last dx of a row unwritten in rows of 257 to 512 values, for which a path of its own is taken."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        if 256 < dx.shape[1] <= 512:
            dx[:, -1] = 0
        return dx


@fault("positions-beyond-2048-in-inference", bn="CM-S1", kind="size")
class PositionsBeyond2048InInference(BatchNorm):
    """Leaves the positions from the 2,049th on unwritten in inference."""

    def write_rows(self, rows: Array, dtype: np.dtype, role: str) -> Array:
        written = super().write_rows(rows, dtype, role)
        if role == "y" and not self.training and written.ndim > 2:
            rest = (axis for axis in range(1, written.ndim) if axis != self.channel_axis)
            moved = written.transpose(0, self.channel_axis, *rest)  # a view
            last = np.arange(math.prod(moved.shape[2:])).reshape(moved.shape[2:]) >= 2048
            moved[:, :, last] = 0
        return written


@fault("eps-missing-beyond-512", ln="CM-S1", bn="CM-S1", kind="size")
class EpsMissingBeyond512(RowSteps):
    """Leaves eps out where a group has more than 512 values, for which a path of its own is taken."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x, eps * 0 if x.shape[1] > 512 else eps)


@fault("beta-needs-gamma-beyond-512", ln="CM-S1", bn="CM-S1", kind="size", apart=("rm",))
class BetaNeedsGammaBeyond512(RowSteps):
    """Drops beta where gamma is None and a group has more than 512 values."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        return super().output(x, s, gamma, None if gamma is None and x.shape[1] > 512 else beta)
