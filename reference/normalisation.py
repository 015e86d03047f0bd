"""One call of an operator that normalises, in double-double: its groups as rows, and every derivative of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..spec.layout import Layout
from ..spec.operators import OPERATORS
from . import rows
from .arguments import floats
from .double_double import DD
from .scaled import Scaled


class Normalisation:
    """
    x as a matrix with one group a row, normalised, and gamma and beta beside it.

    Derivatives take and return arrays in x's shape or gamma's. What is None stands for zero, and what belongs to a
    gamma or beta that is None is None.
    """

    def __init__(self, layout: Layout, x: Any, gamma: Any, beta: Any) -> None:
        self.layout = layout
        self.x = self.data("x", x)
        self.has_gamma, self.has_beta = gamma is not None, beta is not None
        self.gamma = self.parameter("gamma", gamma) if self.has_gamma else rows.ONE
        self.beta = self.parameter("beta", beta)
        self.rows: rows.Rows

    def centred(self, eps: float) -> Normalisation:
        """This, normalised by the mean and variance of each group."""
        self.rows = rows.normalise(self.x, eps)
        return self

    def about_zero(self, eps: float) -> Normalisation:
        """This, normalised by the mean square of each group."""
        self.rows = rows.normalise_by_mean_square(self.x, eps)
        return self

    def by(self, mean: Scaled, variance: Scaled, eps: float) -> Normalisation:
        """This, normalised by constants: columns with one number a group."""
        self.rows = rows.normalise_by(self.x, mean, variance, eps)
        return self

    def data(self, name: str, value: Any) -> Scaled:
        """An array of x's shape as a matrix; numbers that are exact already are taken as they are."""
        exact = value if isinstance(value, Scaled) else Scaled.of(floats(name, value, self.layout.shape))
        return self.layout.rows(exact)

    def parameter(self, name: str, value: Any) -> Scaled:
        """An array of gamma's shape beside the matrix; None is zero."""
        return rows.ZERO if value is None else self.statistic(name, value)

    def statistic(self, name: str, value: Any) -> Scaled:
        """A running statistic beside the matrix: there is always one."""
        return self.layout.parameter_rows(Scaled.of(floats(name, value, self.layout.parameter_shape)))

    def y(self) -> DD:
        """gamma xhat + beta."""
        return self._back(rows.affine(self.rows, self.gamma, self.beta))

    def vjp(self, g: Any) -> tuple[DD, DD | None, DD | None]:
        """(dx, dgamma, dbeta): r P(gamma g), and the sums of g xhat and of g over what shares a parameter."""
        dx, dgamma, dbeta = rows.vjp(self.rows, self.gamma, self.data("g", g), self.layout)
        return self._back(dx), self._of_gamma(dgamma), self._parameter_back(dbeta) if self.has_beta else None

    def jvp(self, tx: Any, tgamma: Any, tbeta: Any) -> DD:
        """gamma r P tx + tgamma xhat + tbeta."""
        tangents = self.data("tx", tx), self.parameter("tgamma", tgamma), self.parameter("tbeta", tbeta)
        return self._back(rows.jvp(self.rows, self.gamma, *tangents))

    def vjp_vjp(self, g: Any, a: Any, b: Any, c: Any) -> tuple[DD, DD | None, DD]:
        """(x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c)."""
        cotangents = self.data("a", a), self.parameter("b", b), self.parameter("c", c)
        x_bar, gamma_bar, g_bar = rows.vjp_vjp(self.rows, self.gamma, self.data("g", g), *cotangents, self.layout)
        return self._back(x_bar), self._of_gamma(gamma_bar), self._back(g_bar)

    def jvp_jvp(self, tx: Any, tgamma: Any, sx: Any, sgamma: Any) -> DD:
        """The derivative of ty in the direction s; y is linear in beta, and in nothing else that beta meets."""
        first = self.data("tx", tx), self.parameter("tgamma", tgamma)
        second = self.data("sx", sx), self.parameter("sgamma", sgamma)
        return self._back(rows.jvp_jvp(self.rows, self.gamma, *first, *second))

    def _back(self, result: Scaled) -> DD:
        return self.layout.back(result).to_dd()

    def _parameter_back(self, result: Scaled) -> DD:
        return self.layout.parameter_back(result).to_dd()

    def _of_gamma(self, result: Scaled) -> DD | None:
        return self._parameter_back(result) if self.has_gamma else None


def normalisation(operator: str, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> Normalisation:
    """
    The call of any operator that normalises, by its record.

    The arguments are taken to fit: ``layer_norm`` and its like refuse bad ones, and say what to pass.
    """
    record, x = OPERATORS[operator], inputs["x"]
    found = Normalisation(Layout.of(operator, x.shape, settings), x, inputs["gamma"], inputs.get("beta"))
    if not record.centred:
        return found.about_zero(settings["eps"])
    if record.has_modes and not settings["training"]:
        mean, variance = (found.statistic(name, inputs[name]) for name in record.statistics)
        return found.by(mean, variance, settings["eps"])
    return found.centred(settings["eps"])
