"""Mean and biased variance in one reading, without squaring the values themselves."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

#: Rows longer than this are dealt to lanes, so that the loop over a row stays short.
LONGEST_STREAM = 1024


def streamed_moments(x: Array) -> tuple[Array, Array]:
    """Welford's update along each row (B. P. Welford, Technometrics 4, 1962); long rows in lanes that are merged."""
    rows, count = x.shape
    if count <= LONGEST_STREAM:
        mean, squares = _stream(x)
    else:
        # The lanes are equally long; what is left over is streamed on its own and merged last.
        lanes = 64
        length = count // lanes
        whole = length * lanes
        means, sums = _stream(x[:, :whole].reshape(rows * lanes, length))
        mean, squares, _ = _merge_up(means.reshape(rows, lanes), sums.reshape(rows, lanes), length)
        if whole < count:
            last_mean, last_squares = _stream(x[:, whole:])
            mean, squares = _merge(mean, squares, whole, last_mean, last_squares, count - whole)
    return mean, squares / x.dtype.type(count)


def merged_moments(x: Array) -> tuple[Array, Array]:
    """Single values merged pairwise up a tree (Chan, Golub and LeVeque, 1979)."""
    mean, squares, _ = _merge_up(x, np.zeros_like(x), 1)
    return mean, squares / x.dtype.type(x.shape[1])


def _stream(x: Array) -> tuple[Array, Array]:
    """Mean and sum of squared deviations of each row, value by value."""
    mean = np.zeros(len(x), x.dtype)
    squares = np.zeros(len(x), x.dtype)
    for index, column in enumerate(np.ascontiguousarray(x.T)):
        before = column - mean
        mean = mean + before / x.dtype.type(index + 1)
        squares = squares + before * (column - mean)
    return mean[:, None], squares[:, None]


def _merge(
    mean: Array, squares: Array, count: int, other: Array, other_squares: Array, other_count: int
) -> tuple[Array, Array]:
    """The moments of two blocks together."""
    number = mean.dtype.type
    share = number(other_count / (count + other_count))
    difference = other - mean
    merged = mean + difference * share
    return merged, squares + other_squares + difference * (difference * number(count) * share)


def _merge_up(means: Array, squares: Array, count: int) -> tuple[Array, Array, int]:
    """All blocks of a row merged pair by pair; each holds `count` values, the last one possibly fewer."""
    last = count
    while means.shape[1] > 1:
        blocks = means.shape[1]
        even = blocks // 2 * 2
        left, right = slice(0, even - 2, 2), slice(1, even - 2, 2)
        merged = _merge(means[:, left], squares[:, left], count, means[:, right], squares[:, right], count)
        # The last pair is apart, for its second block may differ in size when the number of blocks is even.
        second = last if blocks == even else count
        closing = _merge(
            means[:, even - 2 : even - 1],
            squares[:, even - 2 : even - 1],
            count,
            means[:, even - 1 : even],
            squares[:, even - 1 : even],
            second,
        )
        left_over = slice(even, blocks)
        means = np.concatenate([merged[0], closing[0], means[:, left_over]], axis=1)
        squares = np.concatenate([merged[1], closing[1], squares[:, left_over]], axis=1)
        last = count + last if blocks == even else last
        count *= 2
    return means, squares, last
