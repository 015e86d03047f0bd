"""Outputs and gradients of a normalised row in the forms that implementations use, from its mean and r."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import numpy as np

from .envelope_moments import mean_of_shares
from .envelope_sums import Array, Sum, number


@attrs.frozen(eq=False)
class Call:
    """The inputs of a form: rows of one dtype, their statistics, and the order of sums."""

    x: Array
    gamma: Array
    beta: Array
    g: Array
    mean: Array
    r: Array
    total: Sum

    @property
    def h(self) -> Array:
        return self.gamma * self.g

    @property
    def xhat(self) -> Array:
        return (self.x - self.mean) * self.r

    @property
    def n(self) -> np.generic:
        return number(self.x, self.x.shape[1])


Form = Callable[[Call], Array]

#: y = gamma (x - mean) r + beta.
OUTPUTS: dict[str, Form] = {
    "centred": lambda c: c.gamma * c.xhat + c.beta,
    "gamma r first": lambda c: (c.x - c.mean) * (c.gamma * c.r) + c.beta,
}
FOLDED_OUTPUTS: dict[str, Form] = {
    "x a + b": lambda c: c.x * (c.gamma * c.r) + (c.beta - c.mean * (c.gamma * c.r)),
    "(gamma x - gamma mean) r": lambda c: (c.gamma * c.x - c.gamma * c.mean) * c.r + c.beta,
    "x r - mean r": lambda c: (c.x * c.r - c.mean * c.r) * c.gamma + c.beta,
}


def three_terms(c: Call) -> Array:
    """r (h - mean(h) - xhat mean(h xhat))."""
    xhat = c.xhat
    return c.r * (c.h - c.total(c.h) / c.n - xhat * (c.total(c.h * xhat) / c.n))


def of_shares(c: Call) -> Array:
    """The three terms with means in which 1/n multiplies each term, and h d summed before r multiplies the sum."""
    mean = partial(mean_of_shares, c.total)
    return c.r * (c.h - mean(c.h) - c.xhat * (mean(c.h * (c.x - c.mean)) * c.r))


def divided_last(c: Call) -> Array:
    """(r/n) (n h - sum h - xhat sum h xhat)."""
    xhat = c.xhat
    return (c.r / c.n) * (c.n * c.h - c.total(c.h) - xhat * c.total(c.h * xhat))


def differentiated(c: Call) -> Array:
    """Reverse mode over two passes: through the gradients of the variance and the mean."""
    d = c.x - c.mean
    of_variance = c.total(c.h * d) * number(c.x, -0.5) * (c.r * c.r * c.r)
    of_mean = -c.total(c.h * c.r) - of_variance * (number(c.x, 2) * c.total(d) / c.n)
    return c.h * c.r + of_variance * (number(c.x, 2) * d / c.n) + of_mean / c.n


def coefficients(c: Call) -> Array:
    """h r + b x + c, with b and c from the sums of h and of h x and r^3."""
    db, ds = c.total(c.h), c.total(c.h * c.x)
    b = (db * c.mean - ds) * c.r * c.r * c.r / c.n
    return c.h * c.r + b * c.x + (-b * c.mean - db * c.r / c.n)


def folded_terms(c: Call) -> Array:
    """Three terms, with mean(h xhat) as r (mean(h x) - mean mean(h))."""
    c1 = c.total(c.h) / c.n
    c2 = (c.total(c.h * c.x) / c.n - c.mean * c1) * c.r
    return c.r * (c.h - c1 - c.xhat * c2)


#: dx.
GRADIENTS: dict[str, Form] = {
    "three terms": three_terms,
    "of shares": of_shares,
    "divided last": divided_last,
    "differentiated": differentiated,
}
FOLDED_GRADIENTS: dict[str, Form] = {"coefficients": coefficients, "folded terms": folded_terms}

#: The products that a parameter gradient sums.
PRODUCTS: dict[str, Form] = {
    "g xhat": lambda c: c.g * c.xhat,
    "(g d) r": lambda c: c.g * (c.x - c.mean) * c.r,
}


def channel_gamma(c: Call) -> Array:
    """dgamma of a channel as r sum(g (x - mean))."""
    return c.r * c.total(c.g * (c.x - c.mean))


def folded_channel_gamma(c: Call) -> Array:
    """dgamma of a channel as r (sum(g x) - mean sum(g))."""
    return (c.total(c.g * c.x) - c.mean * c.total(c.g)) * c.r


def gamma_last(c: Call) -> Array:
    """dx of a channel with gamma, constant in it, applied last."""
    return three_terms(attrs.evolve(c, gamma=np.ones_like(c.gamma))) * c.gamma


#: r from the variance and eps: two exact operations in either order, and approximate roots 2 ulps off.
ROOTS: dict[str, Callable[[Array], Array]] = {
    "1/sqrt": lambda w: number(w, 1) / np.sqrt(w),
    "sqrt(1/)": lambda w: np.sqrt(number(w, 1) / w),
    "high": lambda w: number(w, 1) / np.sqrt(w) * number(w, 1 + _two_ulps(w)),
    "low": lambda w: number(w, 1) / np.sqrt(w) * number(w, 1 - _two_ulps(w)),
}


def _two_ulps(w: Array) -> float:
    """Less than the 4 u that A7 allows, by the 2.5 u of the quotient, the root and the product here."""
    return 0.75 * float(np.spacing(number(w, 1)))
