"""batch_norm on NumPy arrays: the base that variants and faults of it override."""

from __future__ import annotations

import numpy as np

from .groups import Arrays
from .normalisation import Normalisation
from .rows import Array, Statistics


class BatchNorm(Normalisation):
    """One channel a row, in training by its own statistics and in inference by the running ones."""

    operator = "batch_norm"

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        """The running statistics, as inference uses them."""
        return Statistics(mean, variance, self.rstd(variance, eps), fixed=True)

    def mode_statistics(self, x: Array, running_mean: Array, running_var: Array, eps: np.floating) -> Statistics:
        """The batch's statistics in training, the running ones in inference."""
        if self.training:
            return self.statistics(x, eps)
        return self.fixed_statistics(x, running_mean, running_var, eps)

    def statistics_of(self, x: Array, given: Arrays) -> Statistics:
        """The statistics of the mode."""
        return self.mode_statistics(x, *self._running(given), self.number(self.settings["eps"]))

    def _running(self, given: Arrays) -> tuple[Array, Array]:
        mean, variance = (self.parameter(given[name], name) for name in self.record.statistics)
        assert mean is not None and variance is not None
        return mean, variance

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        """(1 - momentum) old + momentum new: momentum weighs the new statistic; a term of weight 0 is left out."""
        if momentum in (0, 1):
            return new if momentum else old
        return self.number(1 - momentum) * old + self.number(momentum) * new

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        """The variance that the running one is updated with: the biased one."""
        return variance

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        """The new running mean and variance; the given ones in inference and for a batch of no values."""
        if not self.training or count == 0:
            return mean, variance
        entering = self.contributed_variance(s.variance, count, eps)
        return self.updated(mean, s.mean, momentum), self.updated(variance, entering, momentum)

    def new_statistics(self, s: Statistics, given: Arrays, count: int) -> tuple[Array, ...]:
        """The new running statistics."""
        momentum, eps = self.settings["momentum"], self.number(self.settings["eps"])
        found = self.running(s, *self._running(given), momentum, count, eps)
        pairs = [(value, given[name], name) for value, name in zip(found, self.record.statistics)]
        return tuple(self.write(value, old.shape, old.dtype, name) for value, old, name in pairs if old is not None)
