"""Faults beside a group whose value is undefined: the others are refused, or changed to make it defined."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.rows import Array, RowSteps, Statistics
from .registry import fault


@fault("zero-variance-refused", ln="CM-N8", bn="CM-N8", kind="argument")
class ZeroVarianceRefused(RowSteps):
    """Raises where the variance and eps are 0 in any group."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        if np.any(variance + eps == 0):
            raise ZeroDivisionError("the variance is zero")
        return super().rstd(variance, eps)


@fault("zero-variance-guards-all", ln="CM-N8", bn="CM-N8")
class ZeroVarianceGuardsAll(RowSteps):
    """Where the variance and eps are 0 in any group, adds 0.1 to the variance of every group."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        guard = variance.dtype.type(0.1 if np.any(variance + eps == 0) else 0)
        return super().rstd(variance + guard, eps)


@fault("negative-variance-lifts-all", bn="BN-I5")
class NegativeVarianceLiftsAll(BatchNorm):
    """Adds to every running variance what the lowest is below 0."""

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        return super().fixed_statistics(x, mean, variance - np.fmin(variance.min(initial=0), 0), eps)
