"""What pre_norm and post_norm share: LayerNorm over the last axis, without and with its derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .composed import Composed
from .groups import Groups

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of the input, gamma and beta, in the working dtype: the first of x's shape, the others as rows."""

    x: Array
    gamma: Array
    beta: Array


class Block(Composed, Groups):
    """A LayerNorm over the last axis beside an addition."""

    def begin_block(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        eps: float,
        parameters: dict[str, Array | None] | None = None,
        **likewise: Array,
    ) -> None:
        """Refuse bad arguments and note what the call at hand works on."""
        settings = {"eps": eps, "axes": (-1,)}
        self.check(x, {"gamma": gamma, "beta": beta, **(parameters or {})}, {**likewise}, settings)
        self.begin(x, settings)

    # The inner LayerNorm. Its input is an array of x's shape; the role says which.

    def normed(self, array: Array, gamma: Array | None, beta: Array | None, eps: float, role: str = "x") -> Array:
        """gamma xhat + beta of an array of x's shape, in the working dtype."""
        rows = self.rows(array, role)
        s = self.statistics(rows, self.number(eps))
        y = self.output(rows, s, self.parameter(gamma, "gamma"), self.parameter(beta, "beta"))
        return y.reshape(self.shape)

    def norm_gradients(self, array: Array, gamma: Array | None, beta: Array | None, g: Array, eps: float) -> Gradients:
        """The gradients of the inner LayerNorm for the cotangent g of its result."""
        p = self.prepared({"x": array, "gamma": gamma, "beta": beta, "g": g})
        return Gradients(self.input_gradient(p).reshape(self.shape), self.gamma_gradient(p), self.beta_gradient(p))

    def norm_tangent(
        self,
        array: Array,
        gamma: Array | None,
        beta: Array | None,
        t: Array,
        tgamma: Array | None,
        tbeta: Array | None,
        eps: float,
    ) -> Array:
        """The tangent of the inner LayerNorm's result."""
        p = self.prepared({"x": array, "gamma": gamma, "beta": beta, "g": None})
        ty = self.tangent(p, self.rows(t, "tx"), self.filled(tgamma, "tgamma"), self.filled(tbeta, "tbeta"))
        return ty.reshape(self.shape)

    def norm_second_order(
        self,
        array: Array,
        gamma: Array | None,
        beta: Array | None,
        g: Array,
        a: Array,
        b: Array | None,
        c: Array | None,
        eps: float,
    ) -> tuple[Array, Array, Array]:
        """The cotangents of the input, gamma (as a row) and g of `norm_gradients`, for the cotangents a, b and c."""
        p = self.prepared({"x": array, "gamma": gamma, "beta": beta, "g": g})
        x_bar, gamma_bar, g_bar = self.second_order(p, self.rows(a, "a"), self.filled(b, "b"), self.filled(c, "c"))
        return x_bar.reshape(self.shape), gamma_bar, np.broadcast_to(g_bar, x_bar.shape).reshape(self.shape)

    def parameter_result(self, row: Array, given: Array | None, role: str) -> Array | None:
        """A parameter's gradient in that parameter's shape and dtype, None for a parameter that is None."""
        return None if given is None else self.write(row, given.shape, given.dtype, role)
