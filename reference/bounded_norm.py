"""
Normalisation over the last axis as a step on the tape; its input may already be in error.

xhat = (x - mean) r and r = 1/sqrt(var + eps) are two numbers on the tape. Their errors are those of spec/accuracy.md
(A2 to A8); their derivatives are written in terms of themselves,

    dxhat -> r (z - mean(z)),  z = dxhat - xhat mean(dxhat xhat)        dr -> -dr r^2 xhat / n

so that derivatives of any order follow. z is centred last, as a framework does when it differentiates x - mean(x):
mean(xhat) is exactly zero, but computing it rounds.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from . import rows as exactly
from .accuracy import Arithmetic
from .bounded import Array, Number
from .envelope_range import Range
from .envelope_rows import RowBounds, mean
from .scaled import Scaled


@attrs.frozen(slots=False, eq=False)
class InexactRows(RowBounds):
    """Rows whose values may be off by `input_error` before the algorithm starts."""

    input_error: Array = attrs.field(kw_only=True)

    @cached_property
    def mean_error(self) -> Array:
        """E_mu of the erroneous values, at most that of the exact ones plus their errors, and the mean input error."""
        own = RowBounds(self.x, self.eps, self.arithmetic).mean_error
        if not self.input_error.any():
            return own
        return own + RowBounds(self.input_error, self.eps, self.arithmetic).mean_error + mean(self.input_error)

    @cached_property
    def variance_shift(self) -> Array:
        """How far the input error moves the variance: 2 mean(d e) + mean(e^2); the mean's move cancels (sum d = 0)."""
        e = self.input_error
        return 2 * mean(np.abs(self.d) * e) + mean(e * e)

    @cached_property
    def variance_error(self) -> Array:
        """E_v of the erroneous values, plus the distance of their variance from the exact one."""
        # The mean moves by mean(input_error). That is not an error of the algorithm: it takes the mean of its values.
        own = RowBounds(self.x, self.eps, self.arithmetic)
        if not self.input_error.any():
            return own.variance_error
        raised = RowBounds(np.abs(self.x) + self.input_error, self.eps, self.arithmetic)
        factor = 1 + self.arithmetic.u * self.deviation_roundings
        return np.maximum(own.variance_error, raised.variance_error) + factor * self.variance_shift


def normalised(x: Number, eps: float, arithmetic: Arithmetic, gamma: Array) -> tuple[Number, Number, Array]:
    """
    Return xhat, r with a last axis of length 1, and what forming gamma r first may add to an error of y.

    gamma has shape (1, n). The last is eta |x - mean|, since gamma r may underflow, or infinity where it may overflow.
    """
    tape, shape, n = x.tape, x.shape, x.shape[-1]
    error = x.error.reshape(-1, n)
    near = x.as_float64.reshape(-1, n)
    moments = InexactRows(near, eps, arithmetic, input_error=error)
    u, eta = tape.rounding.u, tape.rounding.eta
    with np.errstate(all="ignore"):
        if isinstance(x.value, Scaled):
            exact = exactly.normalise(x.value.reshape(-1, n), eps)
            values = exact.xhat.reshape(*shape), exact.scale.reshape(*shape[:-1], 1)
        else:
            values = moments.xh.reshape(shape), moments.r.reshape(*shape[:-1], 1)
        xh, r, rho, high = np.abs(moments.xh), moments.r, moments.rho, moments.r_high
        # The error of d is that of its own value and that of the mean; for n = 1 they cancel. Two roundings: of the
        # difference and of the product (A8). Folded: x a + b, or in c2 the mean of h x less mu times the mean of h.
        # Each is a sum with s + 5 roundings of terms that then cancel (A8, A11).
        off = moments.mean_error + error if n > 1 else np.zeros_like(error)
        xhat_error = high * off * (1 + 2 * u) + 2 * u * (high * np.abs(moments.d)) + xh * rho + eta
        xhat_error = xhat_error + 3 * high * tape.rounding.flush
        if moments.folded:
            magnitude = moments.magnitude + error
            xhat_error = xhat_error + (moments.s + 5) * u * (magnitude * high) + eta * (magnitude + 2)
        within = Range(moments)
        judged = within.squares & within.stored
        xhat_error = np.where(judged & within.y_terms(np.ones(1)), xhat_error, np.inf).reshape(shape)
        # Gradients form r^3 (R2).
        r_wrong = np.where(judged & within.r_cubed, r * rho, np.inf).reshape(*shape[:-1], 1)
        xh, high = xh.reshape(shape), high.reshape(*shape[:-1], 1)
        xhat = Number(tape, values[0], xh + xhat_error, xhat_error, (1 + xh + xhat_error) * (1 + high))
        root = Number(tape, values[1], high, r_wrong, 1 + high)
    overflow = np.where(within.gain(gamma), 0.0, np.inf).reshape(*shape[:-1], 1)
    shifted = arithmetic.accuracy.variance == "shifted"
    deviation = (np.abs(moments.d) + off).reshape(shape)
    sums = (moments.magnitude + error + 2).reshape(shape)

    def through_xhat(g: Number) -> Number:
        inner = g - xhat * (g * xhat).mean()
        inner = inner - inner.mean()
        if shifted:  # the gradient of the shift adds the sum of all terms to one element (A12)
            sizes = inner.magnitude.sum(axis=-1, keepdims=True)
            inner.error = inner.error + u * (n + 3) * sizes
        back = root * inner
        beyond = np.where(within.dx_terms(g.magnitude.reshape(-1, n)), 0.0, np.inf).reshape(shape)  # of a, b and c (R6)
        back.error = back.error + overflow + beyond + eta * deviation  # r mean(g xhat), formed first, may underflow
        if moments.folded:  # as a x + b g + c, where a is a product with r^3 that may underflow
            back.error = back.error + eta * sums * (1 + high) ** 2
        return back

    xhat.parents = ((x, through_xhat),)
    root.parents = ((x, lambda g: -(g * (root * root) * xhat).divided_by(n)),)
    return xhat, root, overflow + eta * deviation


def layer_norm(x: Number, gamma: Number | None, beta: Number | None, eps: float, arithmetic: Arithmetic) -> Number:
    """gamma xhat + beta."""
    gain = np.ones(1) if gamma is None else gamma.as_float64
    y, root, of_gain = normalised(x, eps, arithmetic, gain.reshape(1, -1))
    if gamma is not None:
        y = y * gamma
        # gamma (x - mean), formed first, may underflow, and gamma r too (A10), or overflow (R6).
        y.error = y.error + y.tape.rounding.eta * root.magnitude + of_gain
    if beta is not None:
        y = y + beta
        y.error = y.error + 2 * y.tape.rounding.u * y.magnitude  # folded into b = beta - mu a: rounded twice (A10)
    return y
