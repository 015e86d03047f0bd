"""Mean and biased variance of rows by sound algorithms, each wholly in the dtype of the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from .envelope_sums import SUMS, Array, Sum, forwards, number, pairs

Moments = Callable[[Array], tuple[Array, Array]]
#: A part of a row: how many values, their mean, and their sum of squared deviations from it.
Part = tuple[int, Array, Array]


def mean_of_shares(total: Sum, terms: Array) -> Array:
    """The sum of the terms, each times 1/n."""
    return total(terms * (number(terms, 1) / number(terms, terms.shape[1])))


def two_pass_of_shares(x: Array) -> tuple[Array, Array]:
    """Two passes in which 1/n multiplies each term, as in a product with a vector of 1/n."""
    center = mean_of_shares(pairs, x)
    return center, mean_of_shares(pairs, (x - center) * (x - center))


def _means(total: Sum, reciprocal: bool) -> Sum:
    if reciprocal:
        return lambda terms: total(terms) * (number(terms, 1) / number(terms, terms.shape[1]))
    return lambda terms: total(terms) / number(terms, terms.shape[1])


def two_pass(total: Sum, *, reciprocal: bool = False) -> Moments:
    """The mean, then the mean of squared deviations from it; by 1/n where `reciprocal`."""
    mean = _means(total, reciprocal)

    def moments(x: Array) -> tuple[Array, Array]:
        center = mean(x)
        return center, mean((x - center) * (x - center))

    return moments


def one_pass(total: Sum, form: str) -> Moments:
    """The mean square less the squared mean, not below zero: by quotient, by 1/n, or (squares - sum mean)/n."""
    mean = _means(total, form == "reciprocal")

    def moments(x: Array) -> tuple[Array, Array]:
        center = mean(x)
        if form == "sums":
            variance = (total(x * x) - total(x) * center) / number(x, x.shape[1])
        else:
            variance = mean(x * x) - center * center
        return center, np.maximum(variance, number(x, 0))

    return moments


def shifted(total: Sum, form: str, place: int) -> Moments:
    """One pass over the values less one of them."""

    def moments(x: Array) -> tuple[Array, Array]:
        origin = x[:, [place]]
        center, variance = one_pass(total, form)(x - origin)
        return origin + center, variance

    return moments


def welford(x: Array) -> tuple[Array, Array]:
    """Updated value by value, the squares from the deviations before and after (Welford, 1962)."""
    center, squares = np.zeros_like(x[:, 0]), np.zeros_like(x[:, 0])
    for count, column in enumerate(x.T, 1):
        before = column - center
        center = center + before / number(x, count)
        squares = squares + before * (column - center)
    return center[:, None], (squares / number(x, x.shape[1]))[:, None]


def merge(a: Part, b: Part) -> Part:
    """Two parts by the difference of their means: m_a + (m_b - m_a) (n_b/n)."""
    size = lambda value: number(a[1], value)  # noqa: E731 - three uses on the lines below
    count, difference = a[0] + b[0], b[1] - a[1]
    center = a[1] + difference * (size(b[0]) / size(count))
    return count, center, a[2] + b[2] + difference * difference * (size(a[0]) * size(b[0]) / size(count))


def merge_weighted(a: Part, b: Part) -> Part:
    """Two parts by the weighted mean (n_a m_a + n_b m_b)/n."""
    size = lambda value: number(a[1], value)  # noqa: E731
    count, difference = a[0] + b[0], b[1] - a[1]
    center = (size(a[0]) * a[1] + size(b[0]) * b[1]) / size(count)
    return count, center, a[2] + b[2] + difference * difference * size(a[0]) * size(b[0]) / size(count)


def _parts(x: Array) -> list[Part]:
    return [(1, column, np.zeros_like(column)) for column in x.T]


def _result(part: Part) -> tuple[Array, Array]:
    return part[1][:, None], (part[2] / number(part[1], part[0]))[:, None]


def tree(join: Callable[[Part, Part], Part]) -> Moments:
    """Single values merged pairwise up a tree (Chan, Golub and LeVeque)."""

    def moments(x: Array) -> tuple[Array, Array]:
        parts = _parts(x)
        while len(parts) > 1:
            odd = parts[len(parts) // 2 * 2 :]
            parts = [join(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)] + odd
        return _result(parts[0])

    return moments


def lane_merge(join: Callable[[Part, Part], Part]) -> Moments:
    """Four lanes, each a stream of merges, merged one after the other."""

    def moments(x: Array) -> tuple[Array, Array]:
        parts = _parts(x)
        return _result(reduce(join, [reduce(merge, parts[lane::4]) for lane in range(min(4, len(parts)))]))

    return moments


def larger_into_smaller(x: Array) -> tuple[Array, Array]:
    """All values but the first streamed, and the stream merged into the first: a correction with weight (n-1)/n."""
    first, *rest = _parts(x)
    return _result(merge(first, reduce(merge, rest)) if rest else first)


def remainder_first(x: Array) -> tuple[Array, Array]:
    """The remainder of blocks of eight first, and everything else merged into it."""
    parts = _parts(x)
    cut = len(parts) % 8 or min(8, len(parts))
    head, body = reduce(merge, parts[:cut]), parts[cut:]
    return _result(merge(head, reduce(merge, body)) if body else head)


def swapped(a: Part, b: Part) -> Part:
    """A merge with the roles of the parts exchanged."""
    return merge(b, a)


def blocks(x: Array) -> tuple[Array, Array]:
    """Blocks of four, each centred by its own mean in two passes, then merged."""
    parts = []
    for start in range(0, x.shape[1], 4):
        block = x[:, start : start + 4]
        center, variance = two_pass(forwards)(block)
        parts.append((block.shape[1], center[:, 0], (variance * number(x, block.shape[1]))[:, 0]))
    return _result(reduce(merge, parts))


#: Algorithms of the class `centred`, by name.
CENTRED: dict[str, Moments] = {
    **{f"two-pass {name}": two_pass(total) for name, total in SUMS.items()},
    **{f"1/n {name}": two_pass(SUMS[name], reciprocal=True) for name in ("forwards", "pairs")},
    "1/n each": two_pass_of_shares,
    "welford": welford,
    "tree": tree(merge),
    "tree weighted": tree(merge_weighted),
    "tree swapped": tree(swapped),
    "lanes": lane_merge(merge),
    "lanes weighted": lane_merge(merge_weighted),
    "lanes swapped": lane_merge(swapped),
    "larger into smaller": larger_into_smaller,
    "remainder first": remainder_first,
    "blocks": blocks,
}
FORMS = ("quotient", "reciprocal", "sums")
#: Algorithms of the class `one-pass`.
ONE_PASS: dict[str, Moments] = {
    f"{form} {total.__name__}": one_pass(total, form) for form in FORMS for total in (forwards, pairs)
}
#: Algorithms of the class `shifted`.
SHIFTED: dict[str, Moments] = {
    f"{form} {total.__name__} about {place}": shifted(total, form, place)
    for form in FORMS
    for total in (forwards, pairs)
    for place in (0, -1)
}
