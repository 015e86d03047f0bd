"""Sound ways to divide by the root mean square, and to differentiate that."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.rms_norm import RmsNorm
from ...adapters.numpy.operators.rows import Array, Pull, Statistics
from .conventions import rounded_to
from .registry import sound


@sound("over-norm", operators=("rms_norm",))
class OverNorm(RmsNorm):
    """x sqrt(n) over the root of the sum of squares and n eps."""

    count: np.floating

    def variance(self, x: Array, mean: Array) -> Array:
        self.count = x.dtype.type(x.shape[1])
        return self.row_sum(x * x)

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return np.sqrt(self.count) / np.sqrt(variance + self.count * eps)


@sound("scaled-by-largest", operators=("rms_norm",))
class ScaledByLargest(RmsNorm):
    """The squares of x over its largest magnitude, and eps divided by the square of that."""

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        if not x.size:
            return super().statistics(x, eps)
        # Not below the root of eps, which would overflow when divided; a group of zeros stays as it is.
        largest = np.maximum(np.max(np.abs(x), axis=1, keepdims=True), np.sqrt(eps))
        largest = np.where((largest > 0) & np.isfinite(largest), largest, x.dtype.type(1))
        mean, variance = self.moments(x / largest)
        rstd = self.rstd(variance, eps / largest / largest)
        return Statistics(mean, variance * largest * largest, rstd / largest)


@sound("fused-mean-square", operators=("rms_norm",))
class FusedMeanSquare(RmsNorm):
    """The gradient of x as rstd (h + b x), its coefficient from the sum of h x."""

    def input_gradient(self, p: Pull) -> Array:
        r = p.statistics.rstd
        mean = self.row_mean(p.h * p.x) * r
        return r * (p.h - mean * r * p.x)


@sound("cast-before-gain", operators=("rms_norm",), conventions={"cast": "before-gain"})
class CastBeforeGain(RmsNorm):
    """xhat rounded to the dtype of x before the gain multiplies it, and its gradients by way of that."""

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        return super().affine(rounded_to(xhat, self.data), gamma, beta)

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        p = super().pull(x, gamma, beta, g, s)
        return Pull(p.x, p.gamma, p.beta, p.g, rounded_to(p.h, self.data), p.xhat, p.statistics)

    def gamma_gradient(self, p: Pull) -> Array:
        return self.parameter_sum(rounded_to(p.g * rounded_to(p.xhat, self.data), self.data))
