"""The operators that normalise on NumPy arrays, soundly: the base that variants and faults override."""

from __future__ import annotations

from typing import Any

import numpy as np

from .groups import Arrays, Groups
from .rows import Array, Statistics


class Normalisation(Groups):
    """
    The canonical callables of an operator, from its record; arrays are passed by position.

    Each call checks the arrays, lays them out as rows, runs the steps of ``RowSteps`` and lays the results out as x.
    """

    def call(self, *arrays: Any, **settings: Any) -> Any:
        """y, of x's shape and dtype, and the operator's other results."""
        given = self.begun(arrays, settings)
        x = given["x"]
        assert x is not None
        rows = self.rows(x, "x")
        s = self.statistics_of(rows, given)
        gamma, beta = self.parameter(given["gamma"], "gamma"), self.parameter(given.get("beta"), "beta")
        y = self.write_rows(self.output(rows, s, gamma, beta), x.dtype, "y")
        return (y, *self.new_statistics(s, given, rows.shape[1])) if self.record.statistics else y

    def new_statistics(self, s: Statistics, given: Arrays, count: int) -> tuple[Array, ...]:
        """The new running statistics, for an operator that has them."""
        raise NotImplementedError

    def vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """dx, dgamma and, if there is a beta, dbeta: each of its input's shape and dtype, None if the input is None."""
        given = self.begun(arrays, settings, "g")
        p = self.prepared(given)
        found = {
            "x": self.write_rows(self.input_gradient(p), arrays[0].dtype, "dx"),
            "gamma": self.of_parameter(self.gamma_gradient(p), given["gamma"], "dgamma"),
            "beta": self.of_parameter(self.beta_gradient(p), given.get("beta"), "dbeta"),
        }
        return tuple(found[name] for name in self.record.differentiable)

    def jvp(self, *arrays: Any, **settings: Any) -> Array:
        """The tangent of y, of x's shape and dtype."""
        tangents = self.directions("t")
        given = self.begun(arrays, settings, *tangents)
        return self.write_rows(
            self.tangent(self.prepared(given), *self.direction_rows(given, tangents)), arrays[0].dtype, "ty"
        )

    def vjp_vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """(x_bar, gamma_bar, g_bar) of the map (x, gamma, g) -> (dx, dgamma, dbeta) at the cotangents (a, b, c)."""
        cotangents = self.directions("a")
        given = self.begun(arrays, settings, "g", *cotangents)
        x_bar, gamma_bar, g_bar = self.second_order(self.prepared(given), *self.direction_rows(given, cotangents))
        dtype = arrays[0].dtype
        return (
            self.write_rows(x_bar, dtype, "x_bar"),
            self.of_parameter(gamma_bar, given["gamma"], "gamma_bar"),
            self.write_rows(g_bar, arrays[len(self.record.arguments)].dtype, "g_bar"),
        )

    def jvp_vjp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The tangents of the gradients in a direction."""
        directions = self.directions("s")
        given = self.begun(arrays, settings, "g", *directions)
        return self._nested(
            self.forward_over_reverse(self.prepared(given), *self.direction_rows(given, directions)), given
        )

    def vjp_jvp(self, *arrays: Any, **settings: Any) -> tuple[Array | None, ...]:
        """The gradients of <g, ty>."""
        tangents = self.directions("t")
        given = self.begun(arrays, settings, *tangents, "g")
        return self._nested(
            self.reverse_over_forward(self.prepared(given), *self.direction_rows(given, tangents)), given
        )

    def jvp_jvp(self, *arrays: Any, **settings: Any) -> Array:
        """The tangent of ty in another direction."""
        first, second = self.directions("t"), self.directions("s")
        given = self.begun(arrays, settings, *first, *second)
        p, (tx, tgamma, _), (sx, sgamma, _) = (
            self.prepared(given),
            self.direction_rows(given, first),
            self.direction_rows(given, second),
        )
        return self.write_rows(self.second_tangent(p, tx, tgamma, sx, sgamma), arrays[0].dtype, "tty")

    def _nested(self, found: tuple[Array, Array], given: Arrays) -> tuple[Array | None, ...]:
        x, beta = given["x"], given.get("beta")
        assert x is not None
        moved = {
            "x": self.write_rows(found[0], x.dtype, "x_bar"),
            "gamma": self.of_parameter(found[1], given["gamma"], "gamma_bar"),
            "beta": None if beta is None else np.zeros_like(beta),  # dbeta is a sum of g, which stays fixed
        }
        return tuple(moved[name] for name in self.record.differentiable)
