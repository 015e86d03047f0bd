"""Functions of bounded numbers: sums of tensors, tanh, relu, the logistic function, softmax, stacking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .bounded import Number


def plain_sum(a: Number, b: Number) -> Number:
    """The sum of two tensors and nothing else: one rounding of the result. Committed."""
    now = a.tape.now
    value = a.value + b.value
    size, errors = np.abs(a.tape.field.near(value)), a.error + b.error
    error = errors + now.u * (size + errors) + 3 * now.flush
    magnitude = size + error
    error = np.where(a.magnitude + b.magnitude < now.largest / 4, error, np.inf)
    return Number(a.tape, value, magnitude, error, np.maximum(magnitude, 1.0), ((a, lambda g: g), (b, lambda g: g)))


def tanh(z: Number) -> Number:
    """
    An input off by e moves tanh by at most e, and by at most (1 - t^2) (exp(2e) - 1)/2, as its slope grows by
    exp(2e) at most on the way (A23). 8u: four ulps for the function itself. Committed.
    """
    now, field = z.tape.now, z.tape.field
    value = field.tanh(z.value)
    size, double, depth = np.abs(field.near(value)), 2 * z.error, 2 * np.abs(z.near)
    # 1 - t^2 = 4 exp(-2|z|) / (1 + exp(-2|z|))^2, of which the denominator does not cancel.
    half = 2 / (1 + np.exp(-depth)) ** 2
    slowed = np.where(
        double < 700,  # as far as exp goes; beyond, the 1 does not count
        half * np.exp(-depth) * np.expm1(np.minimum(double, 700.0)),
        half * np.exp(np.minimum(np.where(np.isinf(double), 700.0, double - depth), 700.0)),
    )
    moved = np.where(np.isinf(z.error), np.inf, np.minimum(z.error, slowed))
    error = moved + 8 * now.u * size + now.eta
    result = Number(z.tape, value, size + error, error, np.ones_like(size))
    result.parents = ((z, lambda g: g * (ones_like(result) - result * result)),)
    return result


def relu(z: Number) -> Number:
    """max(z, 0). Where z may have either sign its derivative is not judged."""
    near, field = z.near, z.tape.field
    mask = (near > 0).astype(np.float64)
    either = np.where(np.abs(near) <= z.error, np.inf, 0.0)
    step = Number(z.tape, field.of(mask), mask, either, np.ones_like(mask))
    error = np.where(near + z.error < 0, 0.0, z.error + z.tape.now.flush)
    magnitude = np.where(near + z.error < 0, 0.0, z.magnitude)
    value = z.value * field.of(mask)
    return Number(z.tape, value, magnitude, error, z.product_bound, ((z, lambda g: g * step),))


def logistic(z: Number) -> tuple[Number, Number]:
    """
    t = 1 / (1 + exp(-z)) and c = 1 - t.

    4u absolute, as 0.5 + 0.5 tanh(z/2) has it, where z is finite; an input off by e moves t and c by a factor of
    exp(e) at most, and so both by at most the smaller of them times (exp(e) - 1). c is 1 - t, one rounding more and of
    the magnitude 1 + t, or the function of -z.
    """
    tape, now = z.tape, z.tape.now
    values = tape.field.logistic(z.value)
    t, c = (tape.field.near(value) for value in values)
    moved = np.minimum(np.minimum(t, c) * np.expm1(np.minimum(z.error, 700.0)), 1.0)
    moved = np.where(np.isinf(z.error), np.inf, moved)  # where nothing is promised of z, it may be NaN
    own = np.where(np.isinf(z.near), 0.0, 4 * now.u)
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
    w_k = exp(l_k) / sum exp(l_j) for tensors of logits, shape (K,). Committed.

    Relative to w_k: the difference l_k - max is rounded, 2u of it in exp(log_softmax), which subtracts twice; 8u for
    exp and its shift, (K + 4)u for the sum, its error in exp and the division; the logarithm of the sum, which
    exp(l - logsumexp(l)) rounds, is at most max |l| + log K; 6u for each scaling down of what was added up before a
    larger logit came, of which there are as many as different logits less one; through expm1, because the difference
    may be 10^4. 2 eta for exp and quotient. A logit of -inf has the weight 0 exactly.
    """
    tape, now = logits.tape, logits.tape.now
    near = logits.near
    value = tape.field.softmax(near)
    w = tape.field.near(value)
    finite = near != -np.inf
    depth = np.where(finite, np.abs(near - near.max(initial=-np.inf, where=finite)), 0.0)
    size = np.abs(near[finite]).max(initial=0.0) + np.log(max(len(near), 1))
    scaled = 6 * max(len(np.unique(near[finite])) - 1, 0)
    relative = now.u * (2 * depth + size + 8 + len(near) + 4 + scaled)
    error = np.where(finite, w * np.expm1(np.minimum(relative, 700.0)) + 2 * now.eta, 0.0)
    result = Number(tape, value, w + error, error, np.ones_like(w))

    def pull(g: Number) -> Number:
        found = result * (g - (result * g).total(0).expanded(g.shape))
        # Differentiated as (sum e_k H_k) / s, the quotients by s underflow before e_k <= 1 multiplies them (A31).
        error = np.where(finite, found.error + 4 * now.eta * g.product_bound.min(), 0.0)
        # Differentiated through the maximum, the sum of all returns to the largest; it is zero but for its roundings.
        total = error.sum() + (len(near) + 1) * now.u * (np.abs(found.near) + error).sum()
        found.error = error + np.where(depth == 0, finite * total, 0.0)
        return found

    result.parents = ((logits, pull),)
    return result


def weighed(z: Number, weights: Number) -> Number:
    """
    sum_k w_k z_k along the first axis, for weights w_k = e_k / s, e_k = exp(l_k - max l).

    As a sum of products; or as (sum e_k z_k) / s, whose quotient may underflow, as g / s may in its gradient, which is
    formed there before e_k <= 1 multiplies it.
    """

    def pull(g: Number) -> Number:
        return Number(g.tape, g.value, g.magnitude, g.error + g.tape.now.eta, g.product_bound, ((g, lambda p: p),))

    outputs = Number(z.tape, z.value, z.magnitude, z.error, z.product_bound, ((z, pull),))
    total = (outputs * weights).total(0)
    total.error = total.error + total.tape.now.eta
    return total


def stacked(numbers: Sequence[Number]) -> Number:
    """Numbers of one shape along a new first axis."""
    tape = numbers[0].tape
    value = tape.field.stack([number.value for number in numbers])
    magnitude, error, product_bound = (
        np.stack([getattr(n, name) for n in numbers]) for name in ("magnitude", "error", "product_bound")
    )
    pulls = ((number, lambda g, k=k: g.picked(k)) for k, number in enumerate(numbers))
    return Number(tape, value, magnitude, error, product_bound, tuple(pulls))


def ones_like(number: Number) -> Number:
    """Exact ones."""
    return number.tape.given(np.ones(number.shape))
