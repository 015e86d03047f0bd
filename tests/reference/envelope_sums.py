"""Sums of rows in many orders, in the dtype of the data: each a column, each within A1 of spec/accuracy.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Sum = Callable[[Array], Array]


def forwards(terms: Array) -> Array:
    """One after the other, first to last."""
    total = terms[:, 0]
    for column in terms.T[1:]:
        total = total + column
    return total[:, None]


def backwards(terms: Array) -> Array:
    """One after the other, last to first."""
    return forwards(terms[:, ::-1])


def pairs(terms: Array) -> Array:
    """Neighbours pairwise, up a tree."""
    while terms.shape[1] > 1:
        even = terms.shape[1] // 2 * 2
        merged = terms[:, 0:even:2] + terms[:, 1:even:2]
        terms = merged if even == terms.shape[1] else np.concatenate([merged, terms[:, even:]], axis=1)
    return terms


def lanes(terms: Array) -> Array:
    """Four lanes, then the lanes up a tree."""
    return pairs(np.concatenate([forwards(terms[:, lane::4]) for lane in range(min(4, terms.shape[1]))], axis=1))


def _sorted(terms: Array, sign: int) -> Array:
    order = np.argsort(sign * np.abs(terms.astype(np.float64)), axis=1, kind="stable")
    return forwards(np.take_along_axis(terms, order, axis=1))


def ascending(terms: Array) -> Array:
    """Smallest magnitude first."""
    return _sorted(terms, 1)


def descending(terms: Array) -> Array:
    """Largest magnitude first, the order in which small terms are lost."""
    return _sorted(terms, -1)


SUMS: dict[str, Sum] = {
    "forwards": forwards,
    "backwards": backwards,
    "pairs": pairs,
    "lanes": lanes,
    "ascending": ascending,
    "descending": descending,
}


def number(like: Array, value: float) -> np.generic:
    """A constant in the dtype of an array."""
    return like.dtype.type(value)
