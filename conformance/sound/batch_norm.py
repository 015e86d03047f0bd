"""batch_norm on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import check_channel_axis, check_eps, check_momentum, check_shapes
from .operator import Operator
from .rows import Pull, Statistics

Array = np.ndarray
Arrays = dict[str, "Array | None"]


class BatchNorm(Operator):
    """One channel a row, parameters along the column."""

    operator = "batch_norm"
    parameters_along_rows = False
    channel_axis: int
    training: bool

    def check(self, x: Array, parameters: Arrays, likewise: Arrays, eps: float, channel_axis: int) -> None:
        """Refuse bad arguments: `parameters` have one entry a channel, `likewise` the shape of x."""
        check_eps(eps)
        check_channel_axis(x.shape, channel_axis)
        check_shapes(parameters, (x.shape[channel_axis],))
        check_shapes(likewise, x.shape)

    def check_weight(self, momentum: float) -> None:
        """Refuse a bad weight of the new statistic."""
        check_momentum(momentum)

    def begin(self, x: Array, channel_axis: int, training: bool) -> None:
        """Note the shape, the channel axis, the mode and the working dtype of the call at hand."""
        self.begin_with(x)
        self.channel_axis, self.training = channel_axis % x.ndim, bool(training)

    def rows(self, array: Array, role: str) -> Array:
        """An array of x's shape as (channels, values of the channel)."""
        moved = np.moveaxis(self.read(array, role), self.channel_axis, 0)
        channels = moved.shape[0]
        return np.ascontiguousarray(moved).reshape(channels, moved.size // channels if channels else 0)

    def write_rows(self, rows: Array, dtype: np.dtype, role: str) -> Array:
        """Rows as an array of x's shape and the given dtype."""
        shape = self.shape
        moved = (shape[self.channel_axis], *shape[: self.channel_axis], *shape[self.channel_axis + 1 :])
        restored = np.moveaxis(rows.reshape(moved), 0, self.channel_axis)
        return self.write(restored, shape, dtype, role)

    def column(self, array: Array, role: str) -> Array:
        """One number a channel, as a column."""
        return self.read(array, role).reshape(-1, 1)

    def parameter(self, array: Array | None, role: str) -> Array | None:
        """A parameter as a column."""
        return None if array is None else self.column(array, role)

    def filled(self, array: Array | None, role: str) -> Array:
        """A parameter's tangent or cotangent as a column, zero where it is None."""
        return np.zeros((1, 1), self.work) if array is None else self.column(array, role)

    # Statistics of the two modes.

    def fixed_statistics(self, x: Array, mean: Array, variance: Array, eps: np.floating) -> Statistics:
        """The running statistics, as inference uses them."""
        return Statistics(mean, variance, self.rstd(variance, eps), fixed=True)

    def mode_statistics(self, x: Array, running_mean: Array, running_var: Array, eps: np.floating) -> Statistics:
        """The batch's statistics in training, the running ones in inference."""
        if self.training:
            return self.statistics(x, eps)
        return self.fixed_statistics(x, running_mean, running_var, eps)

    def updated(self, old: Array, new: Array, momentum: float) -> Array:
        """(1 - momentum) old + momentum new: momentum weighs the new statistic."""
        return self.number(1 - momentum) * old + self.number(momentum) * new

    def contributed_variance(self, variance: Array, count: int, eps: np.floating) -> Array:
        """The variance that enters the running one: the biased one."""
        return variance

    def running(
        self, s: Statistics, mean: Array, variance: Array, momentum: float, count: int, eps: np.floating
    ) -> tuple[Array, Array]:
        """The new running mean and variance; the given ones in inference and for a batch of no values."""
        if not self.training or count == 0:
            return mean, variance
        entering = self.contributed_variance(s.variance, count, eps)
        return self.updated(mean, s.mean, momentum), self.updated(variance, entering, momentum)

    def prepared(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        mean: Array,
        variance: Array,
        g: Array | None,
        eps: float,
    ) -> Pull:
        """Everything derivatives need, from the inputs."""
        rows = self.rows(x, "x")
        cotangent = np.zeros_like(rows) if g is None else self.rows(g, "g")
        s = self.mode_statistics(
            rows, self.column(mean, "running_mean"), self.column(variance, "running_var"), self.number(eps)
        )
        s = self.backward_statistics(s, self.number(eps))
        return self.pull(rows, self.parameter(gamma, "gamma"), self.parameter(beta, "beta"), cotangent, s)

    def call(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        running_mean: Array,
        running_var: Array,
        *,
        eps: float,
        momentum: float,
        training: bool,
        channel_axis: int,
    ) -> tuple[Array, Array, Array]:
        """(y, new_running_mean, new_running_var), y of x's shape and dtype, the statistics as given."""
        named: Arrays = {"gamma": gamma, "beta": beta, "running_mean": running_mean, "running_var": running_var}
        self.check(x, named, {}, eps, channel_axis)
        self.check_weight(momentum)
        self.begin(x, channel_axis, training)
        rows = self.rows(x, "x")
        mean, variance = self.column(running_mean, "running_mean"), self.column(running_var, "running_var")
        s = self.mode_statistics(rows, mean, variance, self.number(eps))
        y = self.output(rows, s, self.parameter(gamma, "gamma"), self.parameter(beta, "beta"))
        new_mean, new_variance = self.running(s, mean, variance, momentum, rows.shape[1], self.number(eps))
        return (
            self.write_rows(y, x.dtype, "y"),
            self.write(new_mean, running_mean.shape, running_mean.dtype, "running_mean"),
            self.write(new_variance, running_var.shape, running_var.dtype, "running_var"),
        )

    def vjp(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        running_mean: Array,
        running_var: Array,
        g: Array,
        *,
        eps: float,
        momentum: float,
        training: bool,
        channel_axis: int,
    ) -> tuple[Array, Array | None, Array | None]:
        """(dx, dgamma, dbeta), each of its input's shape and dtype, None for a parameter that is None."""
        named: Arrays = {"gamma": gamma, "beta": beta, "running_mean": running_mean, "running_var": running_var}
        self.check(x, named, {"g": g}, eps, channel_axis)
        self.begin(x, channel_axis, training)
        p = self.prepared(x, gamma, beta, running_mean, running_var, g, eps)
        dx = self.write_rows(self.input_gradient(p), x.dtype, "dx")
        dgamma = None if gamma is None else self.write(self.gamma_gradient(p), gamma.shape, gamma.dtype, "dgamma")
        dbeta = None if beta is None else self.write(self.beta_gradient(p), beta.shape, beta.dtype, "dbeta")
        return dx, dgamma, dbeta

    def jvp(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        running_mean: Array,
        running_var: Array,
        tx: Array,
        tgamma: Array | None,
        tbeta: Array | None,
        *,
        eps: float,
        momentum: float,
        training: bool,
        channel_axis: int,
    ) -> Array:
        """The tangent of y, of x's shape and dtype."""
        named: Arrays = {
            "gamma": gamma,
            "beta": beta,
            "running_mean": running_mean,
            "running_var": running_var,
            "tgamma": tgamma,
            "tbeta": tbeta,
        }
        self.check(x, named, {"tx": tx}, eps, channel_axis)
        self.begin(x, channel_axis, training)
        p = self.prepared(x, gamma, beta, running_mean, running_var, None, eps)
        ty = self.tangent(p, self.rows(tx, "tx"), self.filled(tgamma, "tgamma"), self.filled(tbeta, "tbeta"))
        return self.write_rows(ty, x.dtype, "ty")

    def vjp_vjp(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        running_mean: Array,
        running_var: Array,
        g: Array,
        a: Array,
        b: Array | None,
        c: Array | None,
        *,
        eps: float,
        momentum: float,
        training: bool,
        channel_axis: int,
    ) -> tuple[Array, Array | None, Array]:
        """(x_bar, gamma_bar, g_bar) of the map (x, gamma, g) -> (dx, dgamma, dbeta) at the cotangents (a, b, c)."""
        named: Arrays = {
            "gamma": gamma,
            "beta": beta,
            "running_mean": running_mean,
            "running_var": running_var,
            "b": b,
            "c": c,
        }
        self.check(x, named, {"g": g, "a": a}, eps, channel_axis)
        self.begin(x, channel_axis, training)
        p = self.prepared(x, gamma, beta, running_mean, running_var, g, eps)
        x_bar, gamma_bar, g_bar = self.second_order(p, self.rows(a, "a"), self.filled(b, "b"), self.filled(c, "c"))
        return (
            self.write_rows(x_bar, x.dtype, "x_bar"),
            None if gamma is None else self.write(gamma_bar, gamma.shape, gamma.dtype, "gamma_bar"),
            self.write_rows(g_bar, g.dtype, "g_bar"),
        )

    def jvp_vjp(
        self, x, gamma, beta, running_mean, running_var, g, sx, sgamma, sbeta, *,
        eps: float, momentum: float, training: bool, channel_axis: int,
    ) -> Any:  # fmt: skip
        """The tangents of (dx, dgamma, dbeta) in the direction (sx, sgamma, sbeta)."""
        del momentum
        given = x, gamma, beta, running_mean, running_var, g, sx, sgamma, sbeta
        return self._nested(self.forward_over_reverse, *given, eps, training, channel_axis)

    def vjp_jvp(
        self, x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, c, *,
        eps: float, momentum: float, training: bool, channel_axis: int,
    ) -> Any:  # fmt: skip
        """The gradients of <c, ty>."""
        del momentum
        given = x, gamma, beta, running_mean, running_var, c, tx, tgamma, tbeta
        return self._nested(self.reverse_over_forward, *given, eps, training, channel_axis)

    def jvp_jvp(
        self, x, gamma, beta, running_mean, running_var, tx, tgamma, tbeta, sx, sgamma, sbeta, *,
        eps: float, momentum: float, training: bool, channel_axis: int,
    ) -> Array:  # fmt: skip
        """The tangent of ty in the direction (sx, sgamma, sbeta)."""
        del momentum, tbeta, sbeta
        named: Arrays = {
            "gamma": gamma, "beta": beta, "running_mean": running_mean, "running_var": running_var,
            "tgamma": tgamma, "sgamma": sgamma,
        }  # fmt: skip
        self.check(x, named, {"tx": tx, "sx": sx}, eps, channel_axis)
        self.begin(x, channel_axis, training)
        p = self.prepared(x, gamma, beta, running_mean, running_var, None, eps)
        found = self.second_tangent(
            p, self.rows(tx, "tx"), self.filled(tgamma, "tgamma"), self.rows(sx, "sx"), self.filled(sgamma, "sgamma")
        )
        return self.write_rows(found, x.dtype, "tty")

    def _nested(
        self, step: Any, x, gamma, beta, running_mean, running_var, g, tx, tgamma, tbeta,
        eps: float, training: bool, channel_axis: int,
    ) -> Any:  # fmt: skip
        named: Arrays = {
            "gamma": gamma, "beta": beta, "running_mean": running_mean, "running_var": running_var,
            "tgamma": tgamma, "tbeta": tbeta,
        }  # fmt: skip
        self.check(x, named, {"g": g, "tx": tx}, eps, channel_axis)
        self.begin(x, channel_axis, training)
        p = self.prepared(x, gamma, beta, running_mean, running_var, g, eps)
        directions = self.rows(tx, "tx"), self.filled(tgamma, "tgamma"), self.filled(tbeta, "tbeta")
        x_bar, gamma_bar = step(p, *directions)
        return (
            self.write_rows(x_bar, x.dtype, "x_bar"),
            None if gamma is None else self.write(gamma_bar, gamma.shape, gamma.dtype, "gamma_bar"),
            None if beta is None else np.zeros_like(beta),
        )
