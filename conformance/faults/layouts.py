"""Faults of memory layout: strides, offsets and orders misread."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Statistics
from ...adapters.numpy.operators.staged import Arrays, Staged
from .registry import fault, issue


def memory(array: Array) -> tuple[Array, int]:
    """The whole memory an array lies in, as it lies, and the position of the array's first element in it."""
    owner = array
    part = getattr(array, "base", None)
    while part is not None:
        # as_strided puts a holder that is not an array between a view and its base.
        owner = part if isinstance(part, np.ndarray) and part.dtype == array.dtype else owner
        part = getattr(part, "base", None)
    flat = owner.ravel(order="K")
    start = array.__array_interface__["data"][0] - lowest_address(owner)
    return flat, start // array.itemsize


def lowest_address(array: Array) -> int:
    """The address of the first byte of an array's memory, negative strides counted."""
    below = sum(min(0, (size - 1) * stride) for size, stride in zip(array.shape, array.strides, strict=True))
    return int(array.__array_interface__["data"][0]) + below


def read_on(array: Array) -> Array:
    """As many elements as the array has, one after the other in memory from its first; zeros past the end."""
    flat, start = memory(array)
    values = flat[start : start + array.size]
    return np.concatenate([values, np.zeros(array.size - values.size, array.dtype)]).reshape(array.shape)


@fault(
    "strides-ignored",
    everywhere="CM-V1",
    kind="layout",
    sources=issue("NVIDIA/TransformerEngine#1017", "ELS-RD/kernl#193"),
)
class StridesIgnored(Staged):
    """Reads x as if it were contiguous, only next to parts on the skip path."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" else array, role)


@fault("storage-offset-ignored", ln="CM-V1", bn="CM-V1", kind="layout", sources=issue("pytorch/pytorch#131750"))
class StorageOffsetIgnored(Groups):
    """Reads x from the start of its memory, whatever the offset."""

    def read(self, array: Array, role: str) -> Array:
        if role == "x" and array.size:
            flat, _ = memory(array)
            indices = np.indices(array.shape).reshape(array.ndim, -1)
            steps = np.array(array.strides)[:, None] // array.itemsize
            array = flat.take((indices * steps).sum(axis=0), mode="wrap").reshape(array.shape)
        return super().read(array, role)


@fault("tail-dropped-for-layout", bn="CM-V1", gn="CM-V1", in_="CM-V1", kind="layout")
class TailDroppedForLayout(Groups):
    """Has a path for an x that is not contiguous, which leaves a tail of 65 to 256 values out of the variance."""

    contiguous = True

    def read(self, array: Array, role: str) -> Array:
        if role == "x":
            self.contiguous = array.flags.c_contiguous
        return super().read(array, role)

    def variance(self, x: Array, mean: Array) -> Array:
        count = x.shape[1]
        tail = 0 if self.contiguous or not 64 < count <= 256 else count % 8
        return super().variance(x[:, : count - tail], mean)


@fault("transposed-misread", ln="CM-V1", bn="CM-V1", kind="layout", sources=issue("pytorch/pytorch#63224"))
class TransposedMisread(Groups):
    """Reads an x that is stored with its axes reversed as if it were not."""

    def read(self, array: Array, role: str) -> Array:
        reversed_order = array.flags.f_contiguous and not array.flags.c_contiguous
        return super().read(read_on(array) if role == "x" and reversed_order else array, role)


def read_by(array: Array, strides: tuple[int, ...]) -> Array:
    """The values that these strides reach in memory from the array's first element on; past the end from the start."""
    flat, start = memory(array)
    steps = np.array(strides, np.intp)[:, None] // array.itemsize
    indices = np.indices(array.shape).reshape(array.ndim, -1)
    return flat.take(start + (indices * steps).sum(axis=0), mode="wrap").reshape(array.shape)


def has_gaps_between_runs(array: Array) -> bool:
    """Whether the last axis lies as in a contiguous array, and another does not: a slice of a larger array."""
    return array.ndim > 1 and array.strides[-1] == array.itemsize and not array.flags.c_contiguous


@fault(
    "rows-read-as-packed",
    ln="CM-V1",
    bn="CM-V1",
    kind="layout",
    sources=issue("vllm-project/vllm#24247", "flashinfer-ai/flashinfer#921", "vllm-project/vllm-xpu-kernels#396"),
)
class RowsReadAsPacked(Groups):
    """Reads the rows of a slice of x as if they lay one after the other."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and has_gaps_between_runs(array) else array, role)


@fault("first-stride-ignored", ln="CM-V1", bn="CM-V1", kind="layout")
class FirstStrideIgnored(Groups):
    """Takes x to have no gaps along its first axis where what lies within it has none."""

    def read(self, array: Array, role: str) -> Array:
        dense = array.ndim > 2 and array.size and array[0].flags.c_contiguous
        return super().read(read_on(array) if role == "x" and dense else array, role)


@fault("leading-axes-misread", everywhere="CM-V1", kind="layout")
class LeadingAxesMisread(Staged):
    """Reads an x whose last axis has no gaps row after row, though the axes before it lie in another order."""

    def read(self, array: Array, role: str) -> Array:
        order = sorted(range(array.ndim - 1), key=lambda axis: -array.strides[axis])
        dense = array.ndim > 2 and array.transpose(*order, array.ndim - 1).flags.c_contiguous
        return super().read(read_on(array) if role == "x" and dense else array, role)


@fault("strides-ignored-without-gamma", ln="CM-V1", bn="CM-V1", kind="layout")
class StridesIgnoredWithoutGamma(Groups):
    """Reads x as if it were contiguous where no gamma is given."""

    without = False

    def before(self, stage: str, arrays: Arrays) -> None:
        self.without = arrays[1] is None

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and self.without else array, role)


@fault("sliced-channels-read-as-packed", bn="CM-V1", gn="CM-V1", in_="CM-V1", kind="layout")
class SlicedChannelsReadAsPacked(Groups):
    """Takes an x whose channels lie side by side in memory for a whole image, though it is a slice of its channels."""

    def read(self, array: Array, role: str) -> Array:
        if role == "x" and array.ndim > 2 and array.shape[1] > 1 and array.strides[1] == array.itemsize:
            order = (0, *range(2, array.ndim), 1)
            return super().read(read_on(array.transpose(order)).transpose(np.argsort(order)), role)
        return super().read(array, role)


@fault("reversed-parameter-read-forwards", ln="CM-V3", bn="CM-V3", kind="layout")
class ReversedParameterReadForwards(Groups):
    """Reads gamma and beta from their lowest address on, though they lie the other way round."""

    def read(self, array: Array, role: str) -> Array:
        backwards = role in ("gamma", "beta") and array.size > 1 and array.strides[-1] < 0
        return super().read(np.flip(array) if backwards else array, role)


@fault("zero-stride-misread", ln="CM-V1", bn="CM-V1", kind="layout")
class ZeroStrideMisread(Groups):
    """Reads on in memory where x is expanded along an axis, though the stride there is zero."""

    def read(self, array: Array, role: str) -> Array:
        expanded = any(stride == 0 and size > 1 for size, stride in zip(array.shape, array.strides, strict=True))
        return super().read(read_on(array) if role == "x" and expanded else array, role)


@fault(
    "strides-ignored-in-second-pass",
    ln="CM-V1",
    bn="CM-V1",
    kind="layout",
    sources=issue("ModelTC/LightLLM#1467"),
)
class StridesIgnoredInSecondPass(Groups):
    """Takes the statistics of x as it lies, and reads it as if it were contiguous where it normalises."""

    misread: Array

    def read(self, array: Array, role: str) -> Array:
        if role == "x":
            self.misread = self.layout.rows(super().read(read_on(array), role))
        return super().read(array, role)

    def normalise(self, x: Array, s: Statistics) -> Array:
        return super().normalise(self.misread if x.shape == self.misread.shape else x, s)


@fault(
    "output-in-order-of-x",
    ln="CM-V1",
    bn="CM-V1",
    kind="layout",
    sources=("https://github.com/vllm-project/vllm/pull/49913",),
)
class OutputInOrderOfX(Groups):
    """Gives y the order of x in memory, and writes it as if that were C order."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        x, y = arrays[0], results[0]
        if stage != "call" or x is None or y is None:
            return results
        order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
        written = y.reshape([x.shape[axis] for axis in order]).transpose(np.argsort(order))
        return (written, *results[1:])


@fault("parameter-strides-ignored", everywhere="CM-V3", kind="layout")
class ParameterStridesIgnored(Groups):
    """Reads gamma and beta as if they were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role in ("gamma", "beta") else array, role)


@fault("expanded-parameter-read-on", everywhere="CM-V3", kind="layout")
class ExpandedParameterReadOn(Groups):
    """Reads a gamma or beta whose stride is 0 as if it were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        expanded = role in ("gamma", "beta") and array.size > 1 and not any(array.strides)
        return super().read(read_on(array) if expanded else array, role)


# gamma and beta of group_norm and instance_norm are vectors, which have one order alone.
@fault("parameters-in-memory-order", ln="CM-V3", kind="layout", apart=("gn", "in"))
class ParametersInMemoryOrder(Groups):
    """Reads a gamma or beta over several axes in the order in which it lies in memory."""

    def read(self, array: Array, role: str) -> Array:
        reversed_order = array.flags.f_contiguous and not array.flags.c_contiguous
        return super().read(read_on(array) if role in ("gamma", "beta") and reversed_order else array, role)


@fault("beta-by-strides-of-gamma", everywhere="CM-V3", kind="layout", apart=("rm",))
class BetaByStridesOfGamma(Groups):
    """Reads beta by the strides of gamma."""

    strides: tuple[int, ...] | None = None

    def before(self, stage: str, arrays: Arrays) -> None:
        gamma = arrays[self.record.arguments.index("gamma")]
        self.strides = None if gamma is None else gamma.strides

    def read(self, array: Array, role: str) -> Array:
        strides = self.strides if role == "beta" else None
        return super().read(array if strides is None else read_by(array, strides), role)


@fault("one-pass-of-views", ln="CM-V1", bn="CM-V1", kind="layout", apart=("rm",))
class OnePassOfViews(Groups):
    """Takes the variance of an x that is not contiguous in one pass."""

    view = False

    def read(self, array: Array, role: str) -> Array:
        if role == "x":
            self.view = not array.flags.c_contiguous
        return super().read(array, role)

    def variance(self, x: Array, mean: Array) -> Array:
        return np.maximum(self.row_mean(x * x) - mean * mean, 0) if self.view else super().variance(x, mean)


@fault("running-strides-ignored", bn="CM-V3", kind="layout")
class RunningStridesIgnored(BatchNorm):
    """Reads the running statistics as if they were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role.startswith("running") else array, role)


@fault("cotangent-strides-ignored", everywhere="CM-V2", kind="layout")
class CotangentStridesIgnored(Staged):
    """Reads the cotangent as if it were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "g" else array, role)


@fault("cotangent-rows-read-as-packed", ln="CM-V2", bn="CM-V2", kind="layout")
class CotangentRowsReadAsPacked(Groups):
    """Reads the rows of a cotangent that is a slice as if they lay one after the other."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "g" and has_gaps_between_runs(array) else array, role)


@fault("zero-stride-cotangent-misread", ln="CM-V2", bn="CM-V2", kind="layout")
class ZeroStrideCotangentMisread(Groups):
    """Reads on in memory where the cotangent is expanded along an axis, as that of a sum is."""

    def read(self, array: Array, role: str) -> Array:
        expanded = any(stride == 0 and size > 1 for size, stride in zip(array.shape, array.strides, strict=True))
        return super().read(read_on(array) if role == "g" and expanded else array, role)


@fault("shared-layout-misread", everywhere="CM-V2", kind="layout")
class SharedLayoutMisread(Staged):
    """Reads the cotangent as if it were contiguous where it and x lie in memory alike, and neither is contiguous."""

    strides: tuple[int, ...] = ()

    def before(self, stage: str, arrays: Arrays) -> None:
        self.strides = () if arrays[0] is None else arrays[0].strides

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "g" and array.strides == self.strides else array, role)


@fault(
    "cotangent-in-order-of-x",
    ln="CM-V2",
    bn="CM-V2",
    kind="layout",
    sources=issue("pytorch/pytorch#175189", "pytorch/pytorch#190645"),
)
class CotangentInOrderOfX(Groups):
    """Takes the cotangent to lie in memory in the order x does."""

    order: tuple[int, ...] = ()

    def read(self, array: Array, role: str) -> Array:
        if role == "x":
            self.order = self.memory_order(array)
        elif role == "g" and self.memory_order(array) != self.order:
            array = read_on(array)
        return super().read(array, role)

    def memory_order(self, array: Array) -> tuple[int, ...]:
        """The axes from the slowest to the fastest; those of one element left out."""
        axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
        return tuple(sorted(axes, key=lambda axis: -abs(array.strides[axis])))


@fault("cotangent-in-order-of-strided-x", ln="CM-V2", bn="CM-V2", kind="layout")
class CotangentInOrderOfStridedX(CotangentInOrderOfX):
    """Takes the cotangent to lie in memory in the order x does, where x has gaps."""

    has_gaps = False

    def read(self, array: Array, role: str) -> Array:
        if role == "x":
            steps = zip(array.shape, array.strides, strict=True)
            self.has_gaps = array.nbytes < array.itemsize + sum((size - 1) * abs(step) for size, step in steps)
        elif role == "g" and not self.has_gaps:
            self.order = self.memory_order(array)
        return super().read(array, role)
