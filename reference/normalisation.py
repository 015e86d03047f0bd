"""One call of a normalising operator in double-double: its groups as rows, and all its derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..spec.layout import Layout
from ..spec.operators import OPERATORS
from . import rows
from .arguments import checked_floats, nonnegative, refuse_no_axis
from .double_double import DD
from .scaled import Scaled


class Normalisation:
    """
    x as a matrix with one group per row, its normalised rows, and gamma and beta.

    Derivatives take and return arrays in x's shape or gamma's. An argument that is None stands for zero; the gradient
    of a gamma or beta that is None is None.
    """

    def __init__(self, layout: Layout, x: Any, gamma: Any, beta: Any) -> None:
        self.layout = layout
        self.x = self.data("x", x)
        self.has_gamma, self.has_beta = gamma is not None, beta is not None
        self.gamma = self.parameter("gamma", gamma) if self.has_gamma else rows.ONE
        self.beta = self.parameter("beta", beta)
        self.rows: rows.Rows

    def centred(self, eps: float) -> Normalisation:
        """Normalise by each group's mean and variance; return self."""
        self.rows = rows.normalise(self.x, eps)
        return self

    def about_zero(self, eps: float) -> Normalisation:
        """Normalise by each group's mean square; return self."""
        self.rows = rows.normalise_by_mean_square(self.x, eps)
        return self

    def by(self, mean: Scaled, variance: Scaled, eps: float) -> Normalisation:
        """Normalise by constants: columns with one number per group; return self."""
        self.rows = rows.normalise_by(self.x, mean, variance, eps)
        return self

    def data(self, name: str, value: Any) -> Scaled:
        """An array of x's shape as a matrix; a Scaled is used unchanged."""
        exact = value if isinstance(value, Scaled) else Scaled.of(checked_floats(name, value, self.layout.shape))
        return self.layout.rows(exact)

    def parameter(self, name: str, value: Any) -> Scaled:
        """An array of gamma's shape, to go beside the matrix; None is zero."""
        return rows.ZERO if value is None else self.statistic(name, value)

    def statistic(self, name: str, value: Any) -> Scaled:
        """A running statistic, to go beside the matrix; never None."""
        return self.layout.parameter_rows(Scaled.of(checked_floats(name, value, self.layout.parameter_shape)))

    def y(self) -> DD:
        """gamma xhat + beta."""
        return self._back(rows.affine(self.rows, self.gamma, self.beta))

    def vjp(self, g: Any) -> tuple[DD, DD | None, DD | None]:
        """(dx, dgamma, dbeta): r P(gamma g), and the sums of g xhat and of g over the values that share a parameter."""
        dx, dgamma, dbeta = self.vjp_unrounded(g)
        return dx.to_dd(), dgamma, dbeta

    def vjp_unrounded(self, g: Any) -> tuple[Scaled, DD | None, DD | None]:
        """As `vjp`, but dx is not rounded to float64 yet, so that more can be added to it."""
        dx, dgamma, dbeta = rows.vjp(self.rows, self.gamma, self.data("g", g), self.layout)
        return self.layout.back(dx), self._of_gamma(dgamma), self._parameter_back(dbeta) if self.has_beta else None

    def jvp(self, tx: Any, tgamma: Any, tbeta: Any) -> DD:
        """gamma r P tx + tgamma xhat + tbeta."""
        tangents = self.data("tx", tx), self.parameter("tgamma", tgamma), self.parameter("tbeta", tbeta)
        return self._back(rows.jvp(self.rows, self.gamma, *tangents))

    def vjp_vjp(self, g: Any, a: Any, b: Any, c: Any) -> tuple[DD, DD | None, DD]:
        """(x_bar, gamma_bar, g_bar), the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c)."""
        cotangents = self.data("a", a), self.parameter("b", b), self.parameter("c", c)
        x_bar, gamma_bar, g_bar = rows.vjp_vjp(self.rows, self.gamma, self.data("g", g), *cotangents, self.layout)
        return self._back(x_bar), self._of_gamma(gamma_bar), self._back(g_bar)

    def jvp_jvp(self, tx: Any, tgamma: Any, sx: Any, sgamma: Any, *, tbeta: Any = None, sbeta: Any = None) -> DD:
        """The derivative of ty in the direction s. y is linear in beta alone: tbeta and sbeta are only checked."""
        self.parameter("tbeta", tbeta)
        self.parameter("sbeta", sbeta)
        first = self.data("tx", tx), self.parameter("tgamma", tgamma)
        second = self.data("sx", sx), self.parameter("sgamma", sgamma)
        return self._back(rows.jvp_jvp(self.rows, self.gamma, *first, *second))

    def _back(self, result: Scaled) -> DD:
        return self.layout.back(result).to_dd()

    def _parameter_back(self, result: Scaled) -> DD:
        return self.layout.to_parameter_shape(result).to_dd()

    def _of_gamma(self, result: Scaled) -> DD | None:
        return self._parameter_back(result) if self.has_gamma else None


def of_last_axis(values: Scaled, gamma: Any, beta: Any, eps: Any) -> Normalisation:
    """LayerNorm over the last axis; ValueError where there is none, and for an unsuitable gamma, beta or eps."""
    refuse_no_axis(values.shape)
    return Normalisation(Layout.trailing(values.shape, 1), values, gamma, beta).centred(nonnegative("eps", eps))


def normalisation(operator: str, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> Normalisation:
    """
    The call of any normalising operator, set up from the operator's record.

    The arguments are not checked: ``layer_norm`` and the others refuse bad ones, and say what to pass.
    """
    record, x = OPERATORS[operator], inputs["x"]
    found = Normalisation(Layout.of(operator, x.shape, settings), x, inputs["gamma"], inputs.get("beta"))
    if not record.centred:
        return found.about_zero(settings["eps"])
    if record.has_modes and not settings["training"]:
        mean, variance = (found.statistic(name, inputs[name]) for name in record.statistics)
        return found.by(mean, variance, settings["eps"])
    return found.centred(settings["eps"])
