"""Faults of second-order and forward-mode derivatives over correct gradients."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.rows import Array, Pull, RowSteps
from ...adapters.numpy.operators.staged import Arrays, Staged
from .layouts import read_on
from .registry import fault, issue


@fault("double-backward-no-gamma", ln="LN-G9", bn="BN-G10", kind="second-order", sources=issue("pytorch/pytorch#41595"))
class DoubleBackwardNoGamma(RowSteps):
    """Leaves gamma out of the curvature."""

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        plain = Pull(p.x, np.ones_like(p.gamma), p.beta, p.g, p.g, p.xhat, p.statistics)
        return super().curvature(plain, a, projected)


@fault(
    "double-backward-detached",
    ln="LN-G9",
    bn="BN-G10",
    kind="second-order",
    sources=issue("pytorch/pytorch#176234", "pytorch/pytorch#186256"),
)
class DoubleBackwardDetached(RowSteps):
    """Takes the saved statistics for constants when the gradient is differentiated."""

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        return np.zeros_like(p.xhat)


@fault(
    "double-backward-saved-statistics",
    ln="LN-G9",
    bn="BN-G10",
    kind="second-order",
    sources=issue("pytorch/pytorch#186256"),
)
class DoubleBackwardSavedStatistics(RowSteps):
    """Takes all that was saved besides x for constants in the double backward pass."""

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        x_bar, gamma_bar, g_bar = super().second_order(p, a, b, c)
        s = p.statistics
        if s.fixed:
            return x_bar, gamma_bar, g_bar
        moved = a * self.row_mean(p.h * p.xhat) + p.h * self.row_mean(a * p.xhat)
        return s.rstd * (b * p.g - s.rstd * moved), gamma_bar, g_bar


@fault("double-backward-saved-xhat", ln="LN-G9", bn="BN-G10", kind="second-order")
class DoubleBackwardSavedXhat(RowSteps):
    """Takes the saved xhat for a constant in the double backward pass, so that nothing reaches x."""

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        x_bar, gamma_bar, g_bar = super().second_order(p, a, b, c)
        return x_bar if p.statistics.fixed else np.zeros_like(x_bar), gamma_bar, g_bar


@fault("double-backward-sign", ln="LN-G9", bn="BN-G10", kind="second-order", sources=issue("pytorch/pytorch#196700"))
class DoubleBackwardSign(RowSteps):
    """Adds the curvature where it should subtract it."""

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        return -super().curvature(p, a, projected)


@fault("double-backward-no-parameters", ln="LN-G9", bn="BN-G10", kind="second-order")
class DoubleBackwardNoParameters(RowSteps):
    """Ignores the cotangents of dgamma and dbeta."""

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        return super().second_order(p, a, np.zeros_like(b), np.zeros_like(c))


@fault("double-backward-strides-ignored", ln="LN-G9", bn="BN-G10", kind="second-order")
class DoubleBackwardStridesIgnored(Staged):
    """Reads the cotangent of dx as if it were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "a" else array, role)


@fault("double-backward-reads-x-on", ln="LN-G9", bn="BN-G10", kind="second-order")
class DoubleBackwardReadsXOn(Staged):
    """Reads x as if it were contiguous when the gradient is differentiated."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and self.stage == "vjp_vjp" else array, role)


@fault("double-backward-nothing-of-dx-alone", ln="LN-G9", bn="BN-G10", kind="second-order")
class DoubleBackwardNothingOfDxAlone(Groups):
    """Leaves gamma_bar at zero where neither dgamma nor dbeta is differentiated."""

    def second_order(self, p: Pull, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        x_bar, gamma_bar, g_bar = super().second_order(p, a, b, c)
        return x_bar, gamma_bar if b.any() or c.any() else np.zeros_like(gamma_bar), g_bar


@fault("double-backward-detached-without-gamma", ln="LN-G9", bn="BN-G10", kind="second-order")
class DoubleBackwardDetachedWithoutGamma(RowSteps):
    """Takes the saved statistics for constants when the gradient is differentiated and no gamma is given."""

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        return super().curvature(p, a, projected) if p.gamma.size > 1 else np.zeros_like(p.xhat)


@fault("double-backward-detached-of-three-axes", ln="LN-G9", kind="second-order", apart=("in",))
class DoubleBackwardDetachedOfThreeAxes(Groups):
    """Takes the saved statistics for constants when the gradient is differentiated and x has three axes."""

    def curvature(self, p: Pull, a: Array, projected: Array) -> Array:
        return super().curvature(p, a, projected) if len(self.shape) != 3 else np.zeros_like(p.xhat)


@fault("jvp-gamma-beside-beta", ln="LN-G10", bn="BN-G11", kind="tangent", apart=("rm",))
class JvpGammaBesideBeta(RowSteps):
    """Ignores the tangent of gamma where no beta is given."""

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        return super().tangent(p, tx, tgamma if p.beta.size > 1 else np.zeros_like(tgamma), tbeta)


@fault("jvp-detached", ln="LN-G10", bn="BN-G11", kind="tangent")
class JvpDetached(RowSteps):
    """Takes the statistics for constants in forward mode."""

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        return p.gamma * (p.statistics.rstd * tx) + tgamma * p.xhat + tbeta


@fault("jvp-no-parameters", ln="LN-G10", bn="BN-G11", kind="tangent")
class JvpNoParameters(RowSteps):
    """Ignores the tangents of gamma and beta."""

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        return super().tangent(p, tx, np.zeros_like(tgamma), np.zeros_like(tbeta))


@fault("jvp-is-vjp", ln="LN-G10", kind="tangent", apart=("in",))
class JvpIsVjp(RowSteps):
    """Applies the transposed Jacobian in forward mode: gamma inside the projection."""

    def tangent(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> Array:
        s = p.statistics
        return s.rstd * self.project(p.gamma * tx, p.xhat, s) + tgamma * p.xhat + tbeta


@fault(
    "reverse-over-forward-detached",
    ln="LN-G13",
    bn="BN-G14",
    kind="second-order",
    sources=issue("pytorch/pytorch#196700", "pytorch/pytorch#196699"),
)
class ReverseOverForwardDetached(RowSteps):
    """Takes the saved statistics for constants when the tangent of y is differentiated."""

    def reverse_over_forward(self, p: Pull, tx: Array, tgamma: Array, tbeta: Array) -> tuple[Array, Array]:
        s = p.statistics
        x_bar, gamma_bar = super().reverse_over_forward(p, tx, tgamma, tbeta)
        return x_bar + s.rstd * self.curvature(p, tx, self.project(tx, p.xhat, s)), gamma_bar


@fault("forward-over-reverse-detached", ln="LN-G12", bn="BN-G13", kind="second-order")
class ForwardOverReverseDetached(RowSteps):
    """Takes the saved statistics for constants when the gradient moves."""

    def forward_over_reverse(self, p: Pull, sx: Array, sgamma: Array, sbeta: Array) -> tuple[Array, Array]:
        s = p.statistics
        x_bar, gamma_bar = super().forward_over_reverse(p, sx, sgamma, sbeta)
        return x_bar + s.rstd * self.curvature(p, sx, self.project(sx, p.xhat, s)), gamma_bar


@fault(
    "forward-over-forward-detached",
    ln="LN-G14",
    bn="BN-G15",
    kind="tangent",
    sources=issue("pytorch/pytorch#196700", "pytorch/pytorch#196699"),
)
class ForwardOverForwardDetached(RowSteps):
    """Takes the saved statistics for constants when the tangent of y moves."""

    def second_tangent(self, p: Pull, tx: Array, tgamma: Array, sx: Array, sgamma: Array) -> Array:
        plain = Pull(p.x, np.zeros_like(p.gamma), p.beta, p.g, p.h, p.xhat, p.statistics)
        return super().second_tangent(plain, tx, tgamma, sx, sgamma)


@fault("jvp-flattened", ln="LN-G10", bn="BN-G11", kind="tangent")
class JvpFlattened(Groups):
    """Returns the tangent of y as a vector."""

    def after(self, stage: str, arrays: Arrays, results: Arrays) -> Arrays:
        return (results[0].reshape(-1),) if stage == "jvp" and results[0] is not None else results
