"""LayerNorm and BatchNorm in arbitrary precision, by the textbook formulas: the standard for the reference.

Arrays are NumPy object arrays of mpmath numbers with one group (a channel, for BatchNorm) per row; gamma and
beta broadcast against them. Nothing here is shared with the reference: first derivatives follow the chain
rule through variance and mean step by step, all others are derivatives of these formulas along a direction,
computed with dual numbers.
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf

#: 60 decimal digits.
LEAST_BITS = 200
#: How many times the data's exponent span is added to that, by order of derivative: y and dx cancel to (eps/var)^1
#: and ^2 at worst, one square, four or eight exponents, apart.
SPANS = {1: 4, 2: 8}


def exact(array) -> np.ndarray:
    """Return an array's values as mpmath numbers."""
    array = np.asarray(array).astype(np.float64)
    result = np.empty(array.shape, dtype=object)
    result.reshape(-1)[:] = [mpf(v) for v in array.reshape(-1).tolist()]
    return result


def precision(*operands, order: int = 1) -> int:
    """Return the bits to work with, for operands this far apart, up to this order of derivative."""
    exponents = [0]
    for operand in operands:
        values = np.asarray(operand).astype(np.float64)
        exponents += np.frexp(values[np.isfinite(values) & (values != 0)])[1].tolist()
    return LEAST_BITS + SPANS[order] * (max(exponents) - min(exponents))


def mean(z: np.ndarray) -> np.ndarray:
    """Average each row."""
    return z.sum(axis=1, keepdims=True) / z.shape[1]


def statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's mean and biased variance."""
    mu = mean(x)
    d = x - mu
    return mu, mean(d * d)


def forward(x, gamma, beta, eps, given=None) -> np.ndarray:
    """Return y; `given` is (mean, variance) in inference."""
    mu, variance = statistics(x) if given is None else given
    return gamma * ((x - mu) / np.sqrt(variance + eps)) + beta


def backward(x, gamma, eps, g, shared, given=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dgamma, dbeta, the parameters' summed along the axis `shared`."""
    mu, variance = statistics(x) if given is None else given
    d = x - mu
    root = np.sqrt(variance + eps)
    to_normalised = gamma * g
    dx = to_normalised / root
    if given is None:
        to_variance = (to_normalised * d).sum(axis=1, keepdims=True) / (-2 * root * root * root)
        to_mean = -to_normalised.sum(axis=1, keepdims=True) / root
        dx = dx + to_variance * 2 * d / x.shape[1] + to_mean / x.shape[1]
    dgamma = (g * (d / root)).sum(axis=shared, keepdims=True)
    return dx, dgamma, g.sum(axis=shared, keepdims=True)


class Dual:
    """value + slope * t, to first order in t."""

    __slots__ = ("slope", "value")

    def __init__(self, value, slope=0) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = _dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = _dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other):
        other = _dual(other)
        quotient = self.value / other.value
        return Dual(quotient, (self.slope - quotient * other.slope) / other.value)

    def __rtruediv__(self, other):
        return _dual(other) / self

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def __sub__(self, other):
        return self + -_dual(other)

    def __rsub__(self, other):
        return _dual(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def sqrt(self):
        """Return the square root."""
        root = mpmath.sqrt(self.value)
        return Dual(root, self.slope / (2 * root))


def _dual(value) -> Dual:
    return value if isinstance(value, Dual) else Dual(value)


def towards(values: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return values + direction * t."""
    values, direction = np.broadcast_arrays(values, direction)
    result = np.empty(values.shape, dtype=object)
    result.reshape(-1)[:] = [Dual(v, s) for v, s in zip(values.reshape(-1), direction.reshape(-1), strict=True)]
    return result


def slopes(values: np.ndarray) -> np.ndarray:
    """Return the derivative of each value along the direction."""
    result = np.empty(values.shape, dtype=object)
    result.reshape(-1)[:] = [_dual(v).slope for v in values.reshape(-1)]
    return result


def forward_along(x, gamma, beta, eps, tx, tgamma, tbeta, given=None) -> np.ndarray:
    """Return the derivative of y along (tx, tgamma, tbeta)."""
    return slopes(forward(towards(x, tx), towards(gamma, tgamma), towards(beta, tbeta), eps, given))


def second_order(x, gamma, eps, g, a, b, c, shared, given=None) -> list[np.ndarray]:
    """Return the gradients of sum(dx a) + sum(dgamma b) + sum(dbeta c) by x, gamma and g.

    One evaluation an element, so for small arrays.
    """
    inputs = [x, gamma, g]
    gradients = [np.full(z.shape, mpf(0), dtype=object) for z in inputs]
    for which, gradient in enumerate(gradients):
        for index in np.ndindex(gradient.shape):
            direction = np.full(gradient.shape, mpf(0), dtype=object)
            direction[index] = mpf(1)
            moved = list(inputs)
            moved[which] = towards(inputs[which], direction)
            dx, dgamma, dbeta = backward(moved[0], moved[1], eps, moved[2], shared, given)
            gradient[index] = _dual((dx * a).sum() + (dgamma * b).sum() + (dbeta * c).sum()).slope
    return gradients
