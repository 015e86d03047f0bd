"""The envelope at u = 2^-102, without final rounding, for data of any magnitude.

The envelope is evaluated in float64, where 1e300 squared overflows. Every result is homogeneous in x, (gamma,
beta), g and the second-order and forward-mode operands, so each is brought to magnitude 1 by a power of two
and the bound is scaled back.
"""

from __future__ import annotations

import math

import attrs
import mpmath
import numpy as np
from mpmath import mpf

from normspec.reference.accuracy import REFERENCE_ARITHMETIC
from normspec.reference.envelope import OperatorEnvelope, envelope_of

from .regimes import Data

#: The reference's arithmetic up to, and not counting, the final rounding to float64.
BEFORE_ROUNDING = attrs.evolve(REFERENCE_ARITHMETIC, u_data=0.0, eta_data=0.0, u_parameter=0.0, eta_parameter=0.0)


def magnitude(*values) -> int:
    """Return the exponent of the largest value; 0 where all are zero."""
    largest = max(np.abs(v).max(initial=0.0) for v in values)
    return int(math.frexp(largest)[1]) if largest else 0


@attrs.frozen
class Bounds:
    """The bounds on every result of one operator for one draw."""

    data: Data
    #: "layer_norm", or "batch_norm" with the channels first.
    operator: str
    training: bool = True

    @property
    def of_x(self) -> int:
        """The exponent x is divided by: that of x and sqrt(eps); one value per row has no deviation to count."""
        scale = [np.sqrt(self.data.eps)]
        if self.data.x.shape[1] > 1 or not self.training:
            scale.append(self.data.x)
        if not self.training:
            scale += [self.data.running_mean, np.sqrt(self.data.running_var)]
        return magnitude(*scale)

    @property
    def of_parameters(self) -> int:
        """The exponent gamma and beta are divided by."""
        return magnitude(self.data.gamma, self.data.beta)

    @property
    def of_g(self) -> int:
        """The exponent g is divided by."""
        return magnitude(self.data.g)

    @property
    def of_a(self) -> int:
        """The exponent of a tangent of x that moves y, only through x, by as much as y's own size."""
        return int(np.clip(self.of_x - self.of_parameters, -1000, 1000))

    @property
    def of_b(self) -> int:
        """The exponent of a tangent of gamma or beta that moves y as much as a tangent of x does."""
        return self.of_a + self.of_parameters - self.of_x

    def outputs(self, momentum: float) -> dict[str, np.ndarray]:
        """Return the bounds on y and, for batch_norm, the running statistics."""
        envelope, k = self._envelope(), self.of_x
        bounds = {"y": _scaled(envelope.y(), self.of_parameters)}
        if self.operator == "batch_norm":
            old_mean = np.ldexp(self.data.running_mean, -k)
            old_var = np.ldexp(self.data.running_var, -2 * k)
            mean, var = envelope.running(old_mean, old_var, momentum, bessel=False).values()
            bounds |= {"new_running_mean": _scaled(mean, k), "new_running_var": _scaled(var, 2 * k)}
        return bounds

    def gradients(self) -> dict[str, np.ndarray]:
        """Return the bounds on dx, dgamma and dbeta."""
        bounds = self._envelope().gradients(np.ldexp(self.data.g, -self.of_g))
        exponents = {"dx": self.of_parameters + self.of_g - self.of_x, "dgamma": self.of_g, "dbeta": self.of_g}
        return {name: _scaled(bound, exponents[name]) for name, bound in bounds.items()}

    def jvp(self, tx, tgamma, tbeta) -> np.ndarray:
        """Return the bound on ty, for tangents of exponent 0 to be scaled by of_a, of_b and of_b."""
        return _scaled(self._envelope().jvp(tx, tgamma, tbeta), self.of_b)

    def vjp_vjp(self, a, b, c) -> dict[str, np.ndarray]:
        """Return the bounds on x_bar, gamma_bar and g_bar, for a, b, c as `jvp` takes its tangents."""
        bounds = self._envelope().vjp_vjp(np.ldexp(self.data.g, -self.of_g), a, b, c)
        exponents = {
            "x": self.of_b + self.of_g - self.of_x,
            "gamma": self.of_g + self.of_a - self.of_x,
            "g": self.of_b,
        }
        return {name: _scaled(bound, exponents[name]) for name, bound in bounds.items()}

    def _envelope(self) -> OperatorEnvelope:
        data, k = self.data, self.of_x
        x = np.ldexp(data.x, -k)
        eps = math.ldexp(data.eps, -2 * k)
        gamma, beta = (np.ldexp(v, -self.of_parameters) for v in (data.gamma, data.beta))
        if self.operator == "layer_norm":
            return envelope_of("layer_norm", x, gamma, beta, eps=eps, axes=(-1,), arithmetic=BEFORE_ROUNDING)
        return envelope_of(
            "batch_norm", x, gamma, beta, np.ldexp(data.running_mean, -k), np.ldexp(data.running_var, -2 * k),
            eps=eps, training=self.training, channel_axis=0, arithmetic=BEFORE_ROUNDING,
        )  # fmt: skip


def _scaled(bound: np.ndarray, exponent: int) -> np.ndarray:
    """Return bound * 2**exponent, as mpmath numbers."""
    result = np.empty(bound.shape, dtype=object)
    result.reshape(-1)[:] = [mpmath.ldexp(mpf(v), exponent) for v in bound.reshape(-1).tolist()]
    return result
