"""The declared variants: sound under a convention other than the normative one."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, RowSteps, Statistics
from ...adapters.numpy.operators.staged import Arrays
from ...adapters.numpy.operators.storage import Storage
from ...spec.operators import OPERATORS
from .composed.working import NATIVE, Native, native_statistics
from .registry import CENTRED, NORMALISATIONS, sound


@sound("one-pass", operators=CENTRED, conventions={"variance_algorithm": "one-pass"})
class OnePass(RowSteps):
    """The variance as mean(x^2) - mean(x)^2, not below zero."""

    def variance(self, x: Array, mean: Array) -> Array:
        # maximum, unlike fmax, lets a NaN through.
        return np.maximum(self.row_mean(x * x) - mean * mean, 0)


@sound("shifted", operators=CENTRED, conventions={"variance_algorithm": "shifted"})
class Shifted(RowSteps):
    """The variance of x less its first value, in one pass."""

    def origin(self, x: Array) -> Array:
        """The value of each row that is subtracted."""
        return x[:, :1]

    def moments(self, x: Array) -> tuple[Array, Array]:
        if not x.shape[1]:
            return super().moments(x)
        origin = self.origin(x)
        moved = x - origin
        offset = self.row_mean(moved)
        return origin + offset, np.maximum(self.row_mean(moved * moved) - offset * offset, 0)


@sound("shifted-by-maximum", operators=CENTRED, conventions={"variance_algorithm": "shifted"})
class ShiftedByMaximum(Shifted):
    """The variance of x less its largest value, in one pass: of -x that is another value."""

    def origin(self, x: Array) -> Array:
        return x.max(axis=1, keepdims=True)


def rounded_to(array: Array, dtype: np.dtype) -> Array:
    """An array rounded to a narrower dtype and widened again."""
    return array.astype(dtype).astype(array.dtype)


@sound("second-stage-narrow", conventions={"storage": "H1"})
class SecondStageNarrow(Groups):
    """xhat rounded to the dtype of x before the affine step, which is rounded after each operation."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        y = rounded_to(xhat, self.data)
        if gamma is not None:
            y = rounded_to(gamma * y, self.data)
        return y if beta is None else rounded_to(y + beta, self.data)


@sound("saved-narrow", conventions={"storage": "H2"})
class SavedNarrow(Groups):
    """Mean and reciprocal root saved for the backward pass in the dtype of the parameters."""

    saved: np.dtype

    def before(self, stage: str, arrays: Arrays) -> None:
        given = [array.dtype for array in arrays[:3] if array is not None]
        self.saved = given[-1]

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        if s.fixed:
            return s
        return Statistics(rounded_to(s.mean, self.saved), s.variance, rounded_to(s.rstd, self.saved))


@sound(
    "native",
    # Its inference would round running statistics that are float32 with 16-bit data, and must return as they were.
    operators=tuple(name for name in NORMALISATIONS if not OPERATORS[name].statistics),
    conventions=NATIVE,
)
class NativeNorm(Native, Groups):
    """16-bit data computed on in its own dtype throughout."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        if x.dtype.itemsize > 2:
            return super().statistics(x, eps)
        return native_statistics(x, *self.moments(x), eps)


@sound("bessel", operators=("batch_norm",), conventions={"running_variance": "bessel"})
class Bessel(BatchNorm):
    """The running variance takes the unbiased variance, the biased one where there is a single value."""

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        return variance * self.number(count / (count - 1)) if count > 1 else variance


@sound("old-momentum", operators=("batch_norm",), conventions={"momentum": "old"})
class OldMomentum(BatchNorm):
    """momentum weighs the old statistic."""

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return super().updated(old, new, 1 - momentum)


@sound("refuses-single-value", operators=("batch_norm",), conventions={"single_value": "error"})
class RefusesSingleValue(BatchNorm):
    """Raises in training where a channel holds one value."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        if x.shape[1] == 1:
            raise ValueError("training needs more than one value a channel")
        return super().statistics(x, eps)


@sound("single-precision-eps", conventions={"eps_dtype": "float32"})
class SinglePrecisionEps(RowSteps):
    """eps rounded to float32 before it is used."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        return super().statistics(x, x.dtype.type(np.float32(eps)))

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        # A column where rows were scaled, and then of what was rounded before; one number everywhere else.
        return super().rstd(variance, variance.dtype.type(np.float32(eps)) if np.ndim(eps) == 0 else eps)


@sound("float32-for-float64", operators=tuple(OPERATORS), conventions={"float64": "float32"})
class Float32ForFloat64(Storage):
    """float64 data rounded to float32, computed there and widened."""

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(np.float32)


@sound("promoted", conventions={"mixed_dtypes": "promoted"})
class Promoted(Groups):
    """y in the dtype of the parameters, where that is wider than x's."""

    wider: np.dtype

    def before(self, stage: str, arrays: Arrays) -> None:
        given = [array.dtype for array in arrays[:3] if array is not None]
        self.wider = max(given, key=lambda dtype: dtype.itemsize)

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array, shape, self.wider if role == "y" else dtype, role)


@sound("one-plus-gamma", operators=NORMALISATIONS, conventions={"gain": "one-plus-gamma"})
class OnePlusGamma(Storage):
    """A gain that is stored as its difference from 1."""

    def read(self, array: Array, role: str) -> Array:
        found = super().read(array, role)
        return found + 1 if role == "gamma" else found
