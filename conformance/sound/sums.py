"""Row sums in other orders: each a column, each within (n - 1) roundings of the exact sum."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def tree_sum(terms: Array) -> Array:
    """Neighbours added pairwise until one value is left; an odd last one is carried up."""
    if terms.shape[1] == 0:
        return np.zeros((len(terms), 1), terms.dtype)
    while terms.shape[1] > 1:
        even = terms.shape[1] // 2 * 2
        pairs = terms[:, 0:even:2] + terms[:, 1:even:2]
        terms = pairs if even == terms.shape[1] else np.concatenate([pairs, terms[:, even:]], axis=1)
    return terms


def sequential_sum(terms: Array) -> Array:
    """One value at a time, first to last."""
    if terms.shape[1] == 0:
        return np.zeros((len(terms), 1), terms.dtype)
    # accumulate must keep every partial sum, so unlike reduce it cannot reorder.
    return np.add.accumulate(terms, axis=1)[:, -1:].copy()


def lane_sum(terms: Array, lanes: int) -> Array:
    """Every `lanes`-th value into the same lane, then the lanes up a tree; missing values count as zero."""
    rows, count = terms.shape
    padded = np.zeros((rows, -(-count // lanes), lanes), terms.dtype)
    padded.reshape(rows, padded.shape[1] * lanes)[:, :count] = terms
    return tree_sum(np.add.reduce(padded, axis=1))


def compensated_sum(terms: Array) -> Array:
    """Kahan's sum: what one addition rounds away is given to the next.

    Long rows are dealt to 64 lanes first, so that the loop stays short; the lanes are summed the same way.
    A sum that is not finite is returned as a plain sum gives it.
    """
    rows, count = terms.shape
    if count > 1024:
        padded = np.zeros((rows, -(-count // 64) * 64), terms.dtype)
        padded[:, :count] = terms
        lanes = padded.reshape(rows, -1, 64).transpose(0, 2, 1).reshape(rows * 64, -1)
        return compensated_sum(compensated_sum(lanes).reshape(rows, 64))
    total = np.zeros(rows, terms.dtype)
    carried = np.zeros(rows, terms.dtype)
    for column in np.ascontiguousarray(terms.T):
        step = column - carried
        moved = total + step
        carried = (moved - total) - step
        total = moved
    plain = np.add.reduce(terms, axis=1)
    return np.where(np.isfinite(plain), total, plain)[:, None]
