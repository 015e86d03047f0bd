"""Faults that write to what they are handed."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array
from ...adapters.numpy.operators.staged import Arrays, Staged
from .registry import SIXTEEN_BIT, fault, issue


def overwrite(target: Array | None, value: Array | None) -> None:
    """Write into an array that was handed in, where it can be written to."""
    if target is not None and value is not None and target.flags.writeable:
        target[...] = value


@fault(
    "x-overwritten",
    ln="CM-P1",
    bn="CM-P1",
    rs="CM-P1",
    pr="CM-P1",
    po="CM-P1",
    mh="CM-P1",
    kind="state",
    sources=issue("GeeeekExplorer/nano-vllm#170"),
)
class XOverwritten(Staged):
    """Works in place: x holds y afterwards."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "call":
            overwrite(arrays[0], results[0])
        return results


@fault("output-aliases-x", ln="CM-P1", bn="CM-P1", kind="state")
class OutputAliasesX(Groups):
    """Works in place where gamma is None, and returns x itself."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage != "call" or arrays[1] is not None:
            return results
        overwrite(arrays[0], results[0])
        return (arrays[0], *results[1:])


@fault("x-centred-in-place-of-one-value", ln="CM-P1", kind="state", apart=("gn", "in"))
class XCentredInPlaceOfOneValue(Groups):
    """Subtracts the mean in place where the last axis has one value."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        x = arrays[0]
        if stage == "call" and x is not None and x.shape[-1] == 1:
            overwrite(x, np.zeros_like(x))
        return results


@fault("x-overwritten-in-backward", ln="CM-P1", bn="CM-P1", kind="state")
class XOverwrittenInBackward(Groups):
    """Writes dx over x in the backward pass."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "vjp":
            overwrite(arrays[0], results[0])
        return results


@fault("gamma-overwritten", ln="CM-P1", bn="CM-P1", kind="state", sources=issue("apache/mxnet#9624"))
class GammaOverwritten(Groups):
    """Resets gamma to 1 after use."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "call" and arrays[1] is not None:
            overwrite(arrays[1], np.ones_like(arrays[1]))
        return results


@fault("beta-overwritten", ln="CM-P1", bn="CM-P1", kind="state", apart=("rm",))
class BetaOverwritten(Groups):
    """Uses beta's memory for dbeta in the backward pass."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "vjp":
            overwrite(arrays[2], results[2])
        return results


@fault(
    "cotangent-overwritten",
    ln="CM-P1",
    bn="CM-P1",
    rs="CM-P1",
    hw="CM-P1",
    kind="state",
    sources=issue("ml-explore/mlx#941"),
)
class CotangentOverwritten(Staged):
    """Writes dx over the cotangent."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "vjp":
            # g is the last array of every signature.
            overwrite(arrays[-1], results[0])
        return results


@fault(
    "x-overwritten-in-its-order", ln="CM-P1", bn="CM-P1", rs="CM-P1", pr="CM-P1", po="CM-P1", mh="CM-P1", kind="state"
)
class XOverwrittenInItsOrder(Staged):
    """Works in place in x with its second axis last, which is not a copy where x lies so in memory."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        x, y = arrays[0], results[0]
        # A contiguous x of which no order is another, such as one of a single row, is handed back as it came.
        if stage == "call" and x is not None and y is not None and x.ndim > 2 and not x.flags.c_contiguous:
            overwrite(np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.moveaxis(y, 1, -1))
        return results


@fault("cotangent-overwritten-in-its-order", ln="CM-P1", bn="CM-P1", rs="CM-P1", hw="CM-P1", kind="state")
class CotangentOverwrittenInItsOrder(Staged):
    """Works in place in the cotangent with its axes reversed, which is not a copy where it lies so in memory."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        g, dx = arrays[-1], results[0]
        if stage == "vjp" and g is not None and dx is not None and not g.flags.c_contiguous:
            overwrite(np.ascontiguousarray(g.T), dx.T)
        return results


@fault("wide-statistics-overwritten", bn="CM-P1", kind="state", dtypes=SIXTEEN_BIT)
class WideStatisticsOverwritten(BatchNorm):
    """Updates the running statistics in place in a wider dtype, of which float32 statistics beside 16-bit x are one."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        x, mean, variance = arrays[0], arrays[3], arrays[4]
        if stage == "call" and x is not None and mean is not None and mean.dtype != x.dtype:
            overwrite(mean, results[1])
            overwrite(variance, results[2])
        return results


@fault("running-statistics-overwritten", bn="CM-P1", kind="state", sources=issue("tenstorrent/tt-metal#45578"))
class RunningStatisticsOverwritten(BatchNorm):
    """Updates the given running statistics in place as well."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "call":
            overwrite(arrays[3], results[1])
            overwrite(arrays[4], results[2])
        return results


@fault("large-cotangent-overwritten", rs="CM-P1", hw="CM-P1", kind="state")
class LargeCotangentOverwritten(Staged):
    """Writes dx over a cotangent of more than 64 values."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        g = arrays[-1]
        if stage == "vjp" and g is not None and g.size > 64:
            overwrite(g, results[0])
        return results


@fault("running-mean-overwritten-at-momentum-one", bn="CM-P1", kind="state")
class RunningMeanOverwrittenAtMomentumOne(BatchNorm):
    """Writes the new running mean over the old one where momentum is 1, since nothing of it is needed."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage == "call" and self.training and self.settings["momentum"] == 1:
            overwrite(arrays[3], results[1])
        return results
