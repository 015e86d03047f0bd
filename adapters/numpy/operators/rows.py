"""Normalisation of the rows of a matrix, with one method per step.

Every normalising operator rearranges its array to one group per row, and then does this; the layout says how gamma lies
beside the rows. A variant or a fault overrides the steps it does differently and inherits the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....spec.layout import Layout

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Statistics:
    """Mean, biased variance and 1/sqrt(variance + eps) of each row, of a shape that broadcasts against the rows."""

    mean: Array
    variance: Array
    rstd: Array
    #: True if they are constants (batch_norm in inference): no derivative goes through them.
    fixed: bool = False


@dataclass(frozen=True, eq=False)
class Pull:
    """The values from which the gradients of one call are computed."""

    x: Array
    #: Parameters, broadcastable against x; a gamma that is None becomes ones, a beta that is None zeros.
    gamma: Array
    beta: Array
    #: The cotangent of y, and gamma times it.
    g: Array
    h: Array
    xhat: Array
    statistics: Statistics


def excess_exponent(x: Array) -> Array:
    """For each row whose squares might overflow, the exponent e such that 2**-e scales it down to 1; otherwise 0.

    A column of integers. Scaling by a power of two is exact except for values that are then far below the rest.
    """
    if not x.size:
        return np.zeros((len(x), 1), np.intc)
    largest = np.max(np.abs(x), axis=1, keepdims=True)
    # A third of the largest exponent leaves room for the square and for a sum of as many terms as memory holds.
    limit = x.dtype.type(2.0 ** (np.finfo(x.dtype).maxexp // 3))
    _, exponent = np.frexp(largest)
    return np.where(np.isfinite(largest) & (largest > limit), exponent, 0)


class RowSteps:
    """The sound steps: two-pass variance, centred affine, gradients in three terms.

    Every array is a matrix of the working dtype, or broadcasts against one.
    """

    layout: Layout

    # Sums.

    def row_sum(self, terms: Array) -> Array:
        """The sum of each row, as a column."""
        return np.add.reduce(terms, axis=1, keepdims=True)

    def row_mean(self, terms: Array) -> Array:
        """The mean of each row, as a column."""
        return self.row_sum(terms) / terms.dtype.type(terms.shape[1])

    def parameter_sum(self, terms: Array) -> Array:
        """The sum over all elements that share a parameter: one value per parameter."""
        if self.layout.along_rows:
            return np.add.reduce(terms, axis=0, keepdims=True)
        return self.shared_sum(self.by_parameter(terms))

    def by_parameter(self, terms: Array) -> Array:
        """The elements rearranged to one row per parameter."""
        stretches = self.layout.stretches(np.broadcast_to(terms, (self.layout.count, self.layout.size)))
        return stretches.transpose(1, 0, 2).reshape(self.layout.parameters, self.layout.sharing)

    def shared_sum(self, terms: Array) -> Array:
        """The sum over all elements that share a parameter, given as one row per parameter."""
        return self.row_sum(terms)

    # Forward.

    def mean(self, x: Array) -> Array:
        """The mean of each row."""
        return self.row_mean(x)

    def variance(self, x: Array, mean: Array) -> Array:
        """The biased variance of each row."""
        deviation = x - mean
        return self.row_mean(deviation * deviation)

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        """The reciprocal root of variance + eps."""
        return 1 / np.sqrt(variance + eps)

    def moments(self, x: Array) -> tuple[Array, Array]:
        """The mean and the biased variance of each row."""
        mean = self.mean(x)
        return mean, self.variance(x, mean)

    def statistics(self, x: Array, eps: np.floating) -> Statistics:
        """Mean, variance and reciprocal root of each row; a row whose squares would overflow is scaled meanwhile."""
        exponent = excess_exponent(x)
        if not exponent.any():
            mean, variance = self.moments(x)
            return Statistics(mean, variance, self.rstd(variance, eps))
        # There is one scaled eps per row; it is eps itself in rows that are not scaled.
        mean, variance = self.moments(np.ldexp(x, -exponent))
        # The scaled eps must not become zero: a constant row would divide zero by zero.
        scaled_eps: Any = np.maximum(np.ldexp(eps, -2 * exponent), min(eps, np.finfo(x.dtype).smallest_normal))
        rstd = self.rstd(variance, scaled_eps)
        return Statistics(np.ldexp(mean, exponent), np.ldexp(variance, 2 * exponent), np.ldexp(rstd, -exponent))

    def normalise(self, x: Array, s: Statistics) -> Array:
        """xhat = (x - mean) rstd."""
        return (x - s.mean) * s.rstd

    def affine(self, xhat: Array, gamma: Array | None, beta: Array | None) -> Array:
        """gamma xhat + beta; a gamma or beta that is None is left out."""
        y = xhat if gamma is None else gamma * xhat
        return y if beta is None else y + beta

    def output(self, x: Array, s: Statistics, gamma: Array | None, beta: Array | None) -> Array:
        """y from the statistics."""
        return self.affine(self.normalise(x, s), gamma, beta)

    # Backward.

    def backward_statistics(self, s: Statistics, eps: np.floating) -> Statistics:
        """The statistics as the backward pass sees them."""
        return s

    def backward_gamma(self, gamma: Array) -> Array:
        """gamma as the gradient of x sees it."""
        return gamma

    def pull(self, x: Array, gamma: Array | None, beta: Array | None, g: Array, s: Statistics) -> Pull:
        """Gather the values that the gradients need."""
        ones, zeros = np.ones((1, 1), x.dtype), np.zeros((1, 1), x.dtype)
        gamma = ones if gamma is None else gamma
        beta = zeros if beta is None else beta
        return Pull(x, gamma, beta, g, self.backward_gamma(gamma) * g, self.normalise(x, s), s)

    def centre(self, z: Array) -> Array:
        """z - mean(z): the derivative of x - mean(x), applied to z."""
        return z - self.row_mean(z)

    def project(self, z: Array, xhat: Array, s: Statistics) -> Array:
        """P z = z - mean(z) - xhat mean(z xhat); z itself if the statistics are constants."""
        if s.fixed:
            return z
        return self.centre(z) - xhat * self.row_mean(z * xhat)

    def input_gradient(self, p: Pull) -> Array:
        """dx = rstd P h."""
        return p.statistics.rstd * self.project(p.h, p.xhat, p.statistics)

    def gamma_gradient(self, p: Pull) -> Array:
        """The sum of g xhat over all elements that share a gamma."""
        return self.parameter_sum(p.g * p.xhat)

    def beta_gradient(self, p: Pull) -> Array:
        """The sum of g over all elements that share a beta."""
        return self.parameter_sum(p.g)

    # Forward mode and second order.

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        """ty = gamma rstd P tx + tgamma xhat + tbeta."""
        s = p.statistics
        return p.gamma * (s.rstd * self.project(tx, p.xhat, s)) + tgamma * p.xhat + tbeta

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        """The gradients of <a, dx> + <b, dgamma> + <c, dbeta> with respect to x, gamma and g."""
        s = p.statistics
        projected = self.project(a, p.xhat, s)
        x_bar = s.rstd * (self.project(b * p.g, p.xhat, s) - self.curvature(p, a, projected))
        gamma_bar = self.parameter_sum(p.g * (s.rstd * projected))
        g_bar = p.gamma * (s.rstd * projected) + b * p.xhat + c
        return x_bar, gamma_bar, g_bar

    def reverse_over_forward(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> tuple[Array, Array]:
        """The gradients of <g, ty>, which is <tx, dx> + <tgamma, dgamma> + <tbeta, dbeta>, in x and gamma."""
        return self.second_order(p, tx, tgamma, tbeta)[:2]

    def forward_over_reverse(self, p: Pull, sx: Array, sgamma: Array, sbeta: Array) -> tuple[Array, Array]:
        """The tangents of dx and dgamma: the second derivative of <g, y> is symmetric."""
        return self.second_order(p, sx, sgamma, sbeta)[:2]

    def second_tangent(self, p: Pull, tx: Array, tgamma: Array, sx: Array, sgamma: Array) -> Array:
        """The derivative of ty in the direction s."""
        s = p.statistics
        pt, ps = self.project(tx, p.xhat, s), self.project(sx, p.xhat, s)
        moved = tgamma * (s.rstd * ps) + sgamma * (s.rstd * pt)
        if s.fixed:
            return moved + np.zeros_like(p.xhat)
        bent = p.xhat * self.row_mean(tx * ps) + self.row_mean(tx * p.xhat) * ps + self.row_mean(sx * p.xhat) * pt
        return moved - p.gamma * (s.rstd * (s.rstd * bent))

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        """rstd (xhat mean(h P a) + mean(a xhat) P h + mean(h xhat) P a): the change of dx with the statistics."""
        s = p.statistics
        if s.fixed:
            return np.zeros_like(p.xhat)
        return s.rstd * (
            p.xhat * self.row_mean(p.h * projected)
            + self.row_mean(a * p.xhat) * self.project(p.h, p.xhat, s)
            + self.row_mean(p.h * p.xhat) * projected
        )
