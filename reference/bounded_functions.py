"""Functions of bounded numbers: sums of tensors, tanh, relu, the logistic function, softmax, stacking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .bounded import Number


def tensor_sum(a: Number, b: Number) -> Number:
    """The sum of two tensors in one addition: one rounding of the result. Materialised."""
    rounding = a.tape.rounding
    value = a.value + b.value
    size, errors = np.abs(a.tape.field.as_float64(value)), a.error + b.error
    error = errors + rounding.u * (size + errors) + 3 * rounding.flush
    magnitude = size + error
    error = np.where(a.magnitude + b.magnitude < rounding.largest / 4, error, np.inf)
    return Number(a.tape, value, magnitude, error, np.maximum(magnitude, 1.0), ((a, lambda g: g), (b, lambda g: g)))


def tanh(z: Number) -> Number:
    """
    An input error e moves tanh by at most e, and by at most (1 - t^2) (exp(2e) - 1)/2, because the slope grows at
    most by exp(2e) over that distance (A23). 8u is four ulps for the function itself. Materialised.
    """
    rounding, field = z.tape.rounding, z.tape.field
    value = field.tanh(z.value)
    size, double, depth = np.abs(field.as_float64(value)), 2 * z.error, 2 * np.abs(z.as_float64)
    # 1 - t^2 = 4 exp(-2|z|) / (1 + exp(-2|z|))^2; nothing cancels in the denominator.
    half = 2 / (1 + np.exp(-depth)) ** 2
    slowed = np.where(
        double < 700,  # exp overflows beyond; there the 1 no longer matters
        half * np.exp(-depth) * np.expm1(np.minimum(double, 700.0)),
        half * np.exp(np.minimum(np.where(np.isinf(double), 700.0, double - depth), 700.0)),
    )
    moved = np.where(np.isinf(z.error), np.inf, np.minimum(z.error, slowed))
    error = moved + 8 * rounding.u * size + rounding.eta
    result = Number(z.tape, value, size + error, error, np.ones_like(size))
    result.parents = ((z, lambda g: g * (ones_like(result) - result * result)),)
    return result


def relu(z: Number) -> Number:
    """max(z, 0). Where z may have either sign, its derivative is not judged."""
    near, field = z.as_float64, z.tape.field
    mask = (near > 0).astype(np.float64)
    either = np.where(np.abs(near) <= z.error, np.inf, 0.0)
    step = Number(z.tape, field.of(mask), mask, either, np.ones_like(mask))
    error = np.where(near + z.error < 0, 0.0, z.error + z.tape.rounding.flush)
    magnitude = np.where(near + z.error < 0, 0.0, z.magnitude)
    value = z.value * field.of(mask)
    return Number(z.tape, value, magnitude, error, z.product_bound, ((z, lambda g: g * step),))


def logistic(z: Number) -> tuple[Number, Number]:
    """
    t = 1 / (1 + exp(-z)) and c = 1 - t.

    The absolute error is 4u, as in 0.5 + 0.5 tanh(z/2), where z is finite. An input error e changes t and c at most by
    a factor of exp(e), so both move by at most the smaller of them times (exp(e) - 1). c is computed either as 1 - t,
    which is one more rounding at the magnitude 1 + t, or as the function of -z.
    """
    tape, rounding = z.tape, z.tape.rounding
    values = tape.field.logistic(z.value)
    t, c = (tape.field.as_float64(value) for value in values)
    moved = np.minimum(np.minimum(t, c) * np.expm1(np.minimum(z.error, 700.0)), 1.0)
    moved = np.where(np.isinf(z.error), np.inf, moved)  # where z is not judged, the result may be NaN
    own = np.where(np.isinf(z.as_float64), 0.0, 4 * rounding.u)
    t_error = moved + own
    c_error = t_error + own / 4
    one = np.ones_like(t)
    gate = Number(tape, values[0], t + t_error, t_error, one)
    carry = Number(tape, values[1], 1 + t + c_error, c_error, 2 * one)
    slope = gate * carry
    gate.parents = ((z, lambda g: g * slope),)
    carry.parents = ((z, lambda g: -(g * slope)),)
    return gate, carry


def softmax(logits: Number) -> Number:
    """
    w_k = exp(l_k) / sum exp(l_j) for tensors of logits, shape (K,). Materialised.

    Errors relative to w_k: 2u of the difference l_k - max, because exp(log_softmax) subtracts and rounds twice. 8u for
    exp and its shift. (K + 4)u for the sum, its error in exp and the division. exp(l - logsumexp(l)) rounds the
    logarithm of the sum, which is at most max |l| + log K. 6u each time the partial sum is scaled down for a larger
    logit: at most the number of different logits less one. All this goes through expm1, because the difference may
    be 10^4. 2 eta for exp and the quotient. A logit of -inf has exactly the weight 0.
    """
    tape, rounding = logits.tape, logits.tape.rounding
    near = logits.as_float64
    value = tape.field.softmax(near)
    w = tape.field.as_float64(value)
    finite = near != -np.inf
    depth = np.where(finite, np.abs(near - near.max(initial=-np.inf, where=finite)), 0.0)
    size = np.abs(near[finite]).max(initial=0.0) + np.log(max(len(near), 1))
    scaled = 6 * max(len(np.unique(near[finite])) - 1, 0)
    relative = rounding.u * (2 * depth + size + 8 + len(near) + 4 + scaled)
    error = np.where(finite, w * np.expm1(np.minimum(relative, 700.0)) + 2 * rounding.eta, 0.0)
    result = Number(tape, value, w + error, error, np.ones_like(w))

    def pull(g: Number) -> Number:
        found = result * (g - (result * g).total(0).expanded(g.shape))
        # Differentiated as (sum e_k H_k) / s, quotients by s underflow before they are multiplied by e_k <= 1 (A31).
        error = np.where(finite, found.error + 4 * rounding.eta * g.product_bound.min(), 0.0)
        # The gradient through the maximum returns the sum of all terms to the largest logit: zero apart from rounding.
        total = error.sum() + (len(near) + 1) * rounding.u * (np.abs(found.as_float64) + error).sum()
        found.error = error + np.where(depth == 0, finite * total, 0.0)
        return found

    result.parents = ((logits, pull),)
    return result


def weighted_sum(z: Number, weights: Number) -> Number:
    """
    sum_k w_k z_k along the first axis, for weights w_k = e_k / s, e_k = exp(l_k - max l).

    An algorithm may add products, or form (sum e_k z_k) / s. That quotient may underflow. In its gradient g / s may
    underflow too, because it is formed before it is multiplied by e_k <= 1.
    """

    def pull(g: Number) -> Number:
        return Number(g.tape, g.value, g.magnitude, g.error + g.tape.rounding.eta, g.product_bound, ((g, lambda p: p),))

    outputs = Number(z.tape, z.value, z.magnitude, z.error, z.product_bound, ((z, pull),))
    total = (outputs * weights).total(0)
    total.error = total.error + total.tape.rounding.eta
    return total


def stacked(numbers: Sequence[Number]) -> Number:
    """Numbers of one shape along a new first axis."""
    tape = numbers[0].tape
    value = tape.field.stack([number.value for number in numbers])
    magnitude, error, product_bound = (
        np.stack([getattr(n, name) for n in numbers]) for name in ("magnitude", "error", "product_bound")
    )
    pulls = ((number, lambda g, k=k: g.element(k)) for k, number in enumerate(numbers))
    return Number(tape, value, magnitude, error, product_bound, tuple(pulls))


def ones_like(number: Number) -> Number:
    """Exact ones."""
    return number.tape.given(np.ones(number.shape))
