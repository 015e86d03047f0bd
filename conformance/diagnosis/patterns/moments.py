"""Moments: the centres and spreads that a normalisation may have used in place of mean and variance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....spec.operators import Groups
from .formula_steps import Array, FormulaSteps

#: One number for each group, as a column.
Column = Callable[[FormulaSteps], Array]


def _variance_over(steps: FormulaSteps, divisor: float) -> Array:
    """The variance with another divisor; 0/0 if that is 0."""
    return steps.variance * steps.n / np.float64(divisor)


def _last_axis(steps: FormulaSteps) -> int:
    """The length of the last axis, which is n only where that axis alone is normalised."""
    return steps.x.shape[-1]


def _mean_over_last_axis(steps: FormulaSteps) -> Array:
    return steps.mean * (steps.n / np.float64(_last_axis(steps)))


def _variance_over_last_axis(steps: FormulaSteps) -> Array:
    """The variance of code that takes the length of the last axis for n in the mean too."""
    return np.square(steps.data - _mean_over_last_axis(steps)).sum(axis=1, keepdims=True) / _last_axis(steps)


def _rounded_up(n: int, block: int) -> int:
    return -(-n // block) * block


def _variance_of_some(keep: Callable[[Array], Array], steps: FormulaSteps) -> Array:
    """The variance of some of the values; their mean square for an operator that does not centre."""
    return (_var if steps.case.record.centred else _mean_square)(_subset(keep, steps))


def _subset(keep: Callable[[Array], Array], steps: FormulaSteps) -> Array:
    """Some of the values of each group; all of them if none would be left."""
    kept = keep(steps.data)
    return kept if kept.shape[1] else steps.data


def _mean(rows: Array) -> Array:
    return rows.mean(axis=1, keepdims=True)


def _mean_square(rows: Array) -> Array:
    return _mean(np.square(rows))


def _var(rows: Array) -> Array:
    return np.square(rows - _mean(rows)).mean(axis=1, keepdims=True)


_SUBSETS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("the first half of the values", lambda rows: rows[:, : max(1, rows.shape[1] // 2)]),
    ("all values but the last", lambda rows: rows[:, :-1]),
    ("all values but the first", lambda rows: rows[:, 1:]),
    ("every second value", lambda rows: rows[:, ::2]),
    ("the values without the largest and the smallest", lambda rows: np.sort(rows, axis=1)[:, 1:-1]),
)
#: Block sizes of a sum that loses the values of an incomplete block.
_BLOCKS = (16, 32, 64, 128, 256, 512, 1024)


def _padded(steps: FormulaSteps) -> Array:
    """The values of each group, padded with zeros to a power of two."""
    return np.pad(steps.data, ((0, 0), (0, (1 << (steps.n - 1).bit_length()) - steps.n)))


def _in_blocks(rows: Array, block: int) -> Array:
    """The values in whole blocks; all values if there are fewer than one block."""
    n = rows.shape[1]
    return rows[:, : n - n % block] if n > block else rows


def _mean_of_blocks(block: int, steps: FormulaSteps) -> Array:
    return _in_blocks(steps.data, block).sum(axis=1, keepdims=True) / steps.n


def _variance_of_blocks(block: int, steps: FormulaSteps) -> Array:
    deviations = steps.data - (_mean_of_blocks(block, steps) if steps.case.record.centred else 0.0)
    return np.square(_in_blocks(deviations, block)).sum(axis=1, keepdims=True) / steps.n


#: By group, the number of the group whose statistics may have been used instead.
_Neighbour = Callable[[FormulaSteps], Array]


def _of_sample(move: Callable[[Array, int], Array], steps: FormulaSteps) -> Array:
    """The same group of another sample; its own if all samples are in one group."""
    samples = steps.x.shape[0] if steps.case.record.groups is Groups.SAMPLE_CHANNELS else 1
    own, each = np.arange(steps.count), max(steps.count // samples, 1)
    return move(own // each, samples) * each + own % each


_NEIGHBOURS: tuple[tuple[str, _Neighbour], ...] = (
    ("the first group", lambda steps: np.zeros(steps.count, int)),
    ("the last group", lambda steps: np.full(steps.count, steps.count - 1)),
    ("the group before", lambda steps: (np.arange(steps.count) - 1) % steps.count),
    ("the group after", lambda steps: (np.arange(steps.count) + 1) % steps.count),
    ("the same group of the first sample", partial(_of_sample, lambda own, samples: own * 0)),
    ("the same group of the last sample", partial(_of_sample, lambda own, samples: own * 0 + samples - 1)),
    ("the same group of the sample before", partial(_of_sample, lambda own, samples: (own - 1) % samples)),
    ("the same group of the sample after", partial(_of_sample, lambda own, samples: (own + 1) % samples)),
)


def _over_samples(column: Column, steps: FormulaSteps) -> Array:
    """The mean of a statistic over the same group of all samples; the statistic itself if there are no such groups."""
    if steps.case.record.groups is not Groups.SAMPLE_CHANNELS:
        return column(steps)
    each = column(steps).reshape(steps.x.shape[0], -1)
    return np.broadcast_to(each.mean(axis=0), each.shape).reshape(-1, 1)


def _of_channels(steps: FormulaSteps) -> Array:
    """The values of each group by channel; as single values if the group is not a block of channels."""
    width = steps.case.layout.width if steps.case.record.groups is Groups.SAMPLE_CHANNELS else 1
    return steps.data.reshape(steps.count, width or 1, -1)


def group_mean(steps: FormulaSteps) -> Array:
    """The right centre."""
    return steps.mean


def _group_variance(steps: FormulaSteps) -> Array:
    return steps.variance


def _running(name: str, steps: FormulaSteps) -> Array:
    """A running statistic that batch_norm is given; NaN for other operators."""
    value = steps.given(name)
    return np.full((steps.count, 1), np.nan) if value is None else value.reshape(-1, 1)


CENTRES: tuple[tuple[str, Column], ...] = (
    ("", group_mean),
    ("the running mean", partial(_running, "running_mean")),
    ("no mean at all", lambda steps: np.zeros_like(steps.mean)),
    ("the mean of the group", lambda steps: _mean(steps.data)),
    ("the median", lambda steps: np.median(steps.data, axis=1, keepdims=True)),
    ("the first value of the group", lambda steps: steps.data[:, :1]),
    ("the last value of the group", lambda steps: steps.data[:, -1:]),
    ("the smallest value of the group", lambda steps: steps.data.min(axis=1, keepdims=True)),
    ("the largest value of the group", lambda steps: steps.data.max(axis=1, keepdims=True)),
    (
        "half the sum of the largest and the smallest value",
        lambda steps: (steps.data.max(axis=1, keepdims=True) + steps.data.min(axis=1, keepdims=True)) / 2,
    ),
    ("the mean of all of x", lambda steps: np.full_like(steps.mean, steps.data.mean())),
    ("the sum divided by n - 1", lambda steps: steps.mean * (steps.n / max(steps.n - 1, 1))),
    ("the sum divided by n + 1", lambda steps: steps.mean * (steps.n / (steps.n + 1))),
    ("the mean without its sign", lambda steps: np.abs(steps.mean)),
    ("twice the mean", lambda steps: 2 * steps.mean),
    ("half the mean", lambda steps: steps.mean / 2),
    ("minus the mean", lambda steps: -steps.mean),
    *((f"the mean of {words}", lambda steps, keep=keep: _mean(_subset(keep, steps))) for words, keep in _SUBSETS),
    *((f"the mean of {words}", lambda steps, by=by: steps.mean[by(steps)]) for words, by in _NEIGHBOURS),
    ("the mean of the same group over all samples", partial(_over_samples, group_mean)),
    ("the mean of the first channel of the group", lambda steps: _mean(_of_channels(steps)[:, 0])),
    ("the sum divided by the length of the last axis", _mean_over_last_axis),
    ("the sum divided by n rounded up to a power of two", lambda steps: _mean(_padded(steps))),
    (
        "the sum divided by the number of samples",
        lambda steps: steps.mean * (steps.n / steps.x.shape[0]) if steps.training else steps.mean,
    ),
    *(
        (f"the sum over whole blocks of {block} values, divided by n,", partial(_mean_of_blocks, block))
        for block in _BLOCKS
    ),
)

#: Replacements for the variance; in rms_norm, for the mean square.
SPREADS: tuple[tuple[str, Column], ...] = (
    ("", _group_variance),
    ("the running variance", partial(_running, "running_var")),
    ("the variance with the divisor n - 1", lambda steps: _variance_over(steps, steps.n - 1)),
    ("the variance with the divisor max(n - 1, 1)", lambda steps: _variance_over(steps, max(steps.n - 1, 1))),
    ("the variance with the divisor n + 1", lambda steps: _variance_over(steps, steps.n + 1)),
    ("the variance with the divisor n - 2", lambda steps: _variance_over(steps, max(steps.n - 2, 1))),
    ("the variance with the divisor n + 2", lambda steps: _variance_over(steps, steps.n + 2)),
    (
        "the variance with the length of the last axis as divisor",
        lambda steps: _variance_over(steps, _last_axis(steps)),
    ),
    (
        "the variance with the length of the last axis minus 1 as divisor",
        lambda steps: _variance_over(steps, _last_axis(steps) - 1),
    ),
    (
        "the squared deviations from it divided by the length of the last axis",
        lambda steps: (
            _variance_over_last_axis(steps) if steps.case.record.centred else np.full_like(steps.mean, np.nan)
        ),
    ),
    *(
        (
            f"the variance with n rounded up to a multiple of {block}",
            lambda steps, block=block: _variance_over(steps, _rounded_up(steps.n, block)),
        )
        for block in (2, 4, 8, 16, 32, 64, 128)
    ),
    ("the sum of the squared deviations", lambda steps: _variance_over(steps, 1)),
    ("the variance of the group", lambda steps: _var(steps.data)),
    ("the mean square", lambda steps: _mean(np.square(steps.data))),
    ("the square of the mean absolute value", lambda steps: _mean(np.abs(steps.data)) ** 2),
    ("the square of the largest magnitude", lambda steps: np.square(steps.data).max(axis=1, keepdims=True)),
    ("the square of the mean absolute deviation", lambda steps: _mean(np.abs(steps.data - steps.mean)) ** 2),
    (
        "the square of the largest deviation",
        lambda steps: np.square(steps.data - steps.mean).max(axis=1, keepdims=True),
    ),
    ("the square of the range", lambda steps: np.ptp(steps.data, axis=1, keepdims=True) ** 2),
    (
        "the square of the median absolute deviation",
        lambda steps: (
            np.median(np.abs(steps.data - np.median(steps.data, axis=1, keepdims=True)), axis=1, keepdims=True) ** 2
        ),
    ),
    ("the variance plus the squared mean", lambda steps: steps.variance + steps.mean**2),
    ("the deviation", lambda steps: np.sqrt(steps.variance)),
    ("the squared variance", lambda steps: steps.variance**2),
    ("the variance of all of x", lambda steps: np.full_like(steps.variance, steps.data.var())),
    ("the mean of all variances", lambda steps: np.full_like(steps.variance, steps.variance.mean())),
    ("the largest of all variances", lambda steps: np.full_like(steps.variance, steps.variance.max())),
    *((f"the variance of {words}", partial(_variance_of_some, keep)) for words, keep in _SUBSETS),
    *((f"the variance of {words}", lambda steps, by=by: steps.variance[by(steps)]) for words, by in _NEIGHBOURS),
    ("the mean of the variances of the same group over all samples", partial(_over_samples, _group_variance)),
    ("the mean of the variances of its channels", lambda steps: _mean(_of_channels(steps).var(axis=2))),
    ("the variance of the first channel of the group", lambda steps: _var(_of_channels(steps)[:, 0])),
    (
        "the variance plus (m - n) mean^2 / n, m being n rounded up to a power of two,",
        lambda steps: steps.variance + steps.mean**2 * ((_padded(steps).shape[1] - steps.n) / steps.n),
    ),
    ("the variance of the group filled up with zeros to a power of two", lambda steps: _var(_padded(steps))),
    *(
        (
            f"the squared deviations of whole blocks of {block} values, divided by n,",
            partial(_variance_of_blocks, block),
        )
        for block in _BLOCKS
    ),
    ("1", lambda steps: np.ones_like(steps.variance)),
)
