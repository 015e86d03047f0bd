"""The undeclared variants: each sound, each written differently."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps, Statistics
from .moments import merged_moments, streamed_moments
from .registry import CENTRED, sound
from .sums import compensated_sum, lane_sum, sequential_sum, tree_sum


@sound("two-pass")
class TwoPass(RowSteps):
    """The mean first, then the variance from the deviations, with NumPy's own sums."""


@sound("welford", operators=CENTRED)
class Welford(RowSteps):
    """Mean and variance updated value by value, in one stream or in lanes that are merged."""

    def moments(self, x: Array) -> tuple[Array, Array]:
        return streamed_moments(x)


@sound("merge-tree", operators=CENTRED)
class MergeTree(RowSteps):
    """Mean and variance of neighbouring blocks merged pairwise up a tree."""

    def moments(self, x: Array) -> tuple[Array, Array]:
        return merged_moments(x)


@sound("tree-sums")
class TreeSums(RowSteps):
    """Every sum over a row taken pairwise up a binary tree, the reciprocal root as sqrt(1 / w)."""

    def row_sum(self, terms: Array) -> Array:
        return tree_sum(terms)

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return np.sqrt(1 / (variance + eps))


@sound("reversed-sums")
class ReversedSums(RowSteps):
    """Every sum taken one value at a time, last to first."""

    def row_sum(self, terms: Array) -> Array:
        return sequential_sum(terms[:, ::-1])

    def parameter_sum(self, terms: Array) -> Array:
        if self.layout.along_rows:
            return np.add.reduce(terms[::-1], axis=0, keepdims=True)
        return super().parameter_sum(terms)


@sound("sorted-sums")
class SortedSums(RowSteps):
    """Every sum over a row taken from its least value up, an order that -x turns round."""

    def row_sum(self, terms: Array) -> Array:
        return sequential_sum(np.sort(terms, axis=1))


@sound("mean-from-maximum", operators=CENTRED)
class MeanFromMaximum(RowSteps):
    """The mean as the largest value and the mean distance from it, then the variance from the deviations."""

    def mean(self, x: Array) -> Array:
        largest = x.max(axis=1, keepdims=True)
        return largest + self.row_mean(x - largest)


@sound("other-sums-where-tracked")
class OtherSumsWhereTracked(RowSteps):
    """Sums taken last to first where gradients are tracked, and by NumPy where they are not."""

    tracked = False

    def prepare(self, *, mode: str = "training", wrt: tuple[str, ...] | None = None) -> None:
        """Note whether a gradient of the calls that follow is to be taken."""
        self.tracked = mode == "training" and bool(wrt)

    def row_sum(self, terms: Array) -> Array:
        return sequential_sum(terms[:, ::-1]) if self.tracked else super().row_sum(terms)


@sound("lanes-of-eight")
class LanesOfEight(RowSteps):
    """Sums in eight lanes, the tail padded with zeros after centring, parameter sums in blocks of 32."""

    def row_sum(self, terms: Array) -> Array:
        return lane_sum(terms, 8)

    def shared_sum(self, terms: Array) -> Array:
        return lane_sum(terms, 32)

    def parameter_sum(self, terms: Array) -> Array:
        if not self.layout.along_rows:
            return super().parameter_sum(terms)
        starts = np.arange(0, max(len(terms), 1), 32)
        if not len(terms):
            return np.zeros((1, terms.shape[1]), terms.dtype)
        partial = np.add.reduceat(terms, starts, axis=0)
        return np.add.reduce(partial, axis=0, keepdims=True)


@sound("compensated-sums")
class CompensatedSums(RowSteps):
    """Every sum over a row carries the rounding error of the one before it."""

    def row_sum(self, terms: Array) -> Array:
        return compensated_sum(terms)


@sound("reciprocal-count")
class ReciprocalCount(RowSteps):
    """Means as sum times 1/n, and running statistics moved by momentum times the difference."""

    def row_mean(self, terms: Array) -> Array:
        one = terms.dtype.type(1)
        return self.row_sum(terms) * (one / terms.dtype.type(terms.shape[1]))

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        return old + old.dtype.type(momentum) * (new - old)


@sound("statistics-kept-by-contents")
class StatisticsKeptByContents(RowSteps):
    """The statistics of the last x kept under all its bytes, for the gradient and for a call with the same values."""

    kept: tuple[object, Statistics] | None = None

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        key = x.shape, x.dtype, x.tobytes(), eps.tobytes()
        if self.kept is None or self.kept[0] != key:
            self.kept = key, super().statistics(x, eps)
        return self.kept[1]


@sound("folded-affine", operators=CENTRED)
class FoldedAffine(Groups):
    """y = x a + b, the mean and the reciprocal root folded into the factor and the term."""

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        if self.record.has_channels:
            factor = s.rstd if gamma is None else gamma * s.rstd
            term = -s.mean * factor
            return x * factor + (term if beta is None else beta + term)
        return self.affine(x * s.rstd + (-s.mean * s.rstd), gamma, beta)


@sound("fused-backward", operators=CENTRED)
class FusedBackward(RowSteps):
    """The gradient of x as rstd (h + b x + c), its coefficients from the sums of h and of h x."""

    def input_gradient(self, p: Pull) -> Array:
        s = p.statistics
        if s.fixed:
            return p.h * s.rstd
        db, ds = self.row_sum(p.h), self.row_sum(p.h * p.x)
        count = p.x.dtype.type(p.x.shape[1])
        c1, c2 = db / count, (ds - s.mean * db) * s.rstd / count
        b = -c2 * s.rstd
        return s.rstd * (p.h + b * p.x + (-b * s.mean - c1))


@sound("scaled-once")
class ScaledOnce(Groups):
    """The gradient of x as (rstd / n) (n h - sum h - xhat sum h xhat), the division by n taken last."""

    def input_gradient(self, p: Pull) -> Array:
        s = p.statistics
        if s.fixed:
            return s.rstd * p.h
        count = p.x.dtype.type(p.x.shape[1])
        centred = count * p.h - self.row_sum(p.h) if self.record.centred else count * p.h
        return (s.rstd / count) * (centred - p.xhat * self.row_sum(p.h * p.xhat))


@sound("wide")
class Wide(RowSteps):
    """Everything computed in float64 and rounded once."""

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(np.float64)
