"""Faults of precision: where values are rounded, and to what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from ...adapters.numpy.operators.staged import Arrays, Staged
from ...reference.formats import FORMATS
from .registry import SIXTEEN_BIT, WIDE, fault, issue


class Narrow(Groups):
    """The base with a rounding to the dtype of x."""

    def narrow(self, array: Array) -> Array:
        """Rounded to the dtype of x and widened again."""
        return array.astype(self.data).astype(array.dtype)

    def narrow_sum(self, terms: Array, axis: int) -> Array:
        """The sum along an axis, every partial sum rounded to the dtype of x."""
        terms = np.moveaxis(terms, axis, -1)
        if terms.shape[-1] == 0:
            total = np.zeros((*terms.shape[:-1], 1), terms.dtype)
        else:
            while terms.shape[-1] > 1:
                even = terms.shape[-1] // 2 * 2
                pairs = self.narrow(terms[..., 0:even:2] + terms[..., 1:even:2])
                terms = np.concatenate([pairs, terms[..., even:]], axis=-1)
            total = terms
        return np.moveaxis(total, -1, axis)

    def narrow_parameter_sum(self, terms: Array) -> Array:
        """The sum over all that shares a parameter, every partial sum rounded to the dtype of x."""
        return self.narrow_sum(self.by_parameter(terms), 1)


@fault(
    "statistics-narrow",
    ln="LN-F1",
    bn="BN-F1",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue(
        "microsoft/onnxruntime#29034",
        "NVIDIA/TensorRT#2564",
        "facebookresearch/ConvNeXt#80",
        "tenstorrent/tt-metal#54371",
    ),
)
class StatisticsNarrow(Narrow):
    """Sums mean and variance in the 16-bit dtype of x."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        count = x.dtype.type(x.shape[1])
        mean = self.narrow(self.narrow_sum(x, 1) / count) if self.record.centred else self.mean(x)
        deviation = x - mean
        variance = self.narrow(self.narrow_sum(self.narrow(deviation * deviation), 1) / count)
        return Statistics(mean, variance, self.rstd(variance, eps))


@fault(
    "computed-natively",
    ln="LN-F1",
    bn="BN-F1",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue("pytorch/pytorch#66707"),
)
class ComputedNatively(Narrow):
    """Rounds every step of the forward pass to the 16-bit dtype of x."""

    def mean(self, x: Array) -> Array:
        return self.narrow(super().mean(x))

    def variance(self, x: Array, mean: Array) -> Array:
        return self.narrow(super().variance(x, mean))

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return self.narrow(super().rstd(variance, eps))

    def normalise(self, x: Array, s: Statistics) -> Array:
        return self.narrow(self.narrow(x - s.mean) * s.rstd)

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = xhat if gamma is None else self.narrow(gamma * xhat)
        return y if beta is None else y + beta


@fault("xhat-narrow", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=SIXTEEN_BIT)
class XhatNarrow(Narrow):
    """Rounds xhat to the 16-bit dtype of x before the affine step."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(self.narrow(xhat), gamma, beta)


@fault(
    "saved-statistics-narrow",
    ln="LN-G1",
    bn="BN-G1",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue("pytorch/pytorch#166005"),
)
class SavedStatisticsNarrow(Narrow):
    """Saves mean and reciprocal root for the backward pass in the 16-bit dtype of x."""

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        return Statistics(self.narrow(s.mean), s.variance, self.narrow(s.rstd), s.fixed)


@fault(
    "dgamma-narrow",
    ln="LN-G2",
    bn="BN-G2",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue("pytorch/pytorch#156513"),
)
class DgammaNarrow(Narrow):
    """Sums dgamma in the 16-bit dtype of x."""

    def gamma_gradient(self, p: Pull) -> Array:
        return self.narrow_parameter_sum(self.narrow(p.g * p.xhat))


@fault(
    "dgamma-through-bfloat16",
    ln="LN-G2",
    bn="BN-G2",
    kind="dtype",
    dtypes=("float16", *WIDE),
    sources=("https://github.com/linkedin/Liger-Kernel/pull/1253",),
)
class DgammaThroughBfloat16(RowSteps):
    """Rounds dgamma to bfloat16 on the way out."""

    def gamma_gradient(self, p: Pull) -> Array:
        dgamma = super().gamma_gradient(p)
        return dgamma.astype(FORMATS["bfloat16"].dtype).astype(dgamma.dtype)


@fault("xhat-kept-in-float16", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=WIDE)
class XhatKeptInFloat16(RowSteps):
    """Keeps xhat in float16 for the backward pass."""

    kept = "float16"

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        p = super().pull(x, gamma, beta, g, s)
        return replace(p, xhat=p.xhat.astype(FORMATS[self.kept].dtype).astype(p.xhat.dtype))


@fault("xhat-kept-in-bfloat16", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=("float16", *WIDE))
class XhatKeptInBfloat16(XhatKeptInFloat16):
    """Keeps xhat in bfloat16 for the backward pass."""

    kept = "bfloat16"


@fault("rstd-kept-in-float16", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=WIDE)
class RstdKeptInFloat16(RowSteps):
    """Keeps 1/sqrt(var + eps) in float16 for the backward pass."""

    kept = "float16"

    def rounded(self, value: Array) -> Array:
        """The value as it is kept."""
        return value.astype(FORMATS[self.kept].dtype).astype(value.dtype)

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        return s if s.fixed else Statistics(s.mean, s.variance, self.rounded(s.rstd))


@fault("rstd-kept-in-bfloat16", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=("float16", *WIDE))
class RstdKeptInBfloat16(RstdKeptInFloat16):
    """Keeps 1/sqrt(var + eps) in bfloat16 for the backward pass."""

    kept = "bfloat16"


@fault("statistics-kept-in-float16", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=WIDE, apart=("rm",))
class StatisticsKeptInFloat16(RstdKeptInFloat16):
    """Keeps the mean and 1/sqrt(var + eps) in float16 for the backward pass."""

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        return s if s.fixed else Statistics(self.rounded(s.mean), s.variance, self.rounded(s.rstd))


@fault("statistics-kept-in-bfloat16", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=("float16", *WIDE), apart=("rm",))
class StatisticsKeptInBfloat16(StatisticsKeptInFloat16):
    """Keeps the mean and 1/sqrt(var + eps) in bfloat16 for the backward pass."""

    kept = "bfloat16"


@fault("dbeta-narrow", ln="LN-G3", bn="BN-G3", kind="dtype", dtypes=SIXTEEN_BIT)
class DbetaNarrow(Narrow):
    """Sums dbeta in the 16-bit dtype of x."""

    def beta_gradient(self, p: Pull) -> Array:
        return self.narrow_parameter_sum(p.g)


@fault("output-truncated", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=SIXTEEN_BIT)
class OutputTruncated(Narrow):
    """Cuts y off to 16 bits where it should round."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = super().affine(xhat, gamma, beta)
        rounded = y.astype(self.data)
        # One down in magnitude where rounding went up: nextafter on the bits, which all 16-bit formats order alike.
        bits = rounded.view(np.uint16) - (np.abs(rounded.astype(y.dtype)) > np.abs(y)).astype(np.uint16)
        return bits.view(self.data).astype(y.dtype)


@fault("float64-in-float32", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=("float64",))
class Float64InFloat32(Groups):
    """Computes float64 in float32."""

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(np.float32)


@fault("inputs-in-ten-bits", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=WIDE)
class InputsInTenBits(Groups):
    """Rounds x to the ten fraction bits of a tensor core's format."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        if role != "x":
            return values
        fraction, exponent = np.frexp(values)
        return np.ldexp(np.rint(fraction * values.dtype.type(2**11)), exponent - 11)


@fault("inputs-through-float16", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=("bfloat16", *WIDE))
class InputsThroughFloat16(Groups):
    """Rounds x to float16 on the way in."""

    def read(self, array: Array, role: str) -> Array:
        values = super().read(array, role)
        return values.astype(np.float16).astype(values.dtype) if role == "x" else values


@fault("subnormal-output-flushed", ln="LN-F1", bn="BN-F1", kind="dtype", dtypes=("float16",))
class SubnormalOutputFlushed(Groups):
    """Replaces subnormal values of y by zero, which undeclared is a loss of digits below 2^-14 in float16."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = super().affine(xhat, gamma, beta)
        return np.where(np.abs(y) < 2.0**-14, y.dtype.type(0), y)


@fault("subnormal-gradient-flushed", ln="LN-G1", bn="BN-G1", kind="dtype", dtypes=("float16",))
class SubnormalGradientFlushed(Groups):
    """Replaces subnormal values of dx by zero."""

    def input_gradient(self, p: Pull) -> Array:
        dx = super().input_gradient(p)
        return np.where(np.abs(dx) < 2.0**-14, dx.dtype.type(0), dx)


class Retyped(Staged):
    """The base with results handed out in other dtypes."""

    def retyped(self, array: Array | None, dtype: type) -> Array | None:
        """The array in another dtype."""
        return None if array is None else array.astype(dtype)


@fault("output-float32", everywhere="CM-T2", kind="dtype", dtypes=SIXTEEN_BIT)
class OutputFloat32(Retyped):
    """Returns y in the float32 it was computed in."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.retyped(results[0], np.float32), *results[1:]) if stage == "call" else results


@fault("output-float16", ln="CM-T2", bn="CM-T2", kind="dtype", dtypes=("bfloat16", *WIDE))
class OutputFloat16(Retyped):
    """Returns y in float16."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.retyped(results[0], np.float16), *results[1:]) if stage == "call" else results


@fault("output-float64", ln="CM-T2", bn="CM-T2", kind="dtype", dtypes=(*SIXTEEN_BIT, "float32"))
class OutputFloat64(Retyped):
    """Returns y in float64."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.retyped(results[0], np.float64), *results[1:]) if stage == "call" else results


@fault(
    "running-statistics-float32",
    bn="CM-T2",
    kind="dtype",
    dtypes=(*SIXTEEN_BIT, "float64"),
    sources=issue("onnx/onnx#3415"),
)
class RunningStatisticsFloat32(Retyped):
    """Returns the running statistics in float32."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        if stage != "call":
            return results
        return results[0], self.retyped(results[1], np.float32), self.retyped(results[2], np.float32)


@fault("gradient-float32", ln="CM-T3", bn="CM-T3", rs="CM-T3", hw="CM-T3", kind="dtype", dtypes=SIXTEEN_BIT)
class GradientFloat32(Retyped):
    """Returns dx in the float32 it was computed in."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (self.retyped(results[0], np.float32), *results[1:]) if stage == "vjp" else results
