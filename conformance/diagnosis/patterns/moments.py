"""
Moments: the mean, spread, eps and parameters with which the formula returns the received y.

In each group, y - beta divided by gamma (x - mean) is the reciprocal root that was used; each value bounds it. If the
bounds agree for some centre, that centre was subtracted. The spread is then searched within the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from ....reference.formats import FORMATS
from ....spec.operators import Groups
from .formula_steps import FormulaSteps
from .numbers import Interval, simplest, written
from .observing import ObservedResult
from .relation import EXTRA_ROUNDINGS, LinearRelation

Array = np.ndarray
#: The range of numbers that somebody may have written into a formula. A number outside comes from the data.
_SMALLEST_NUMBER, _LARGEST_NUMBER = 1e-16, 1e4
#: After this many relations that all bounds allow but the values do not, the bounds say too little.
_MOST_TRIED = 20
#: One number for each group, as a column.
Column = Callable[[FormulaSteps], Array]


def _over(steps: FormulaSteps, divisor: float) -> Array:
    """The variance with another divisor; 0/0 if that is 0."""
    return steps.variance * steps.n / np.float64(divisor)


def _up(n: int, block: int) -> int:
    return -(-n // block) * block


def _mean_of_some(keep: Callable[[Array], Array]) -> Column:
    """The mean of some of the values of each group; of all, if none would be left."""
    return lambda steps: _mean(_kept(keep, steps))


def _variance_of_some(keep: Callable[[Array], Array]) -> Column:
    """The variance of some of the values; their mean square for an operator that does not centre."""
    return lambda steps: (_var if steps.case.record.centred else _mean_square)(_kept(keep, steps))


def _kept(keep: Callable[[Array], Array], steps: FormulaSteps) -> Array:
    kept = keep(steps.data)
    return kept if kept.shape[1] else steps.data


def _mean(rows: Array) -> Array:
    return rows.mean(axis=1, keepdims=True)


def _mean_square(rows: Array) -> Array:
    return _mean(np.square(rows))


def _var(rows: Array) -> Array:
    return np.square(rows - _mean(rows)).mean(axis=1, keepdims=True)


_SOME: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("the first half of the values", lambda rows: rows[:, : max(1, rows.shape[1] // 2)]),
    ("all values but the last", lambda rows: rows[:, :-1]),
    ("all values but the first", lambda rows: rows[:, 1:]),
    ("every second value", lambda rows: rows[:, ::2]),
    ("the values without the largest and the smallest", lambda rows: np.sort(rows, axis=1)[:, 1:-1]),
)
#: Block sizes of a sum that loses the values of an incomplete block.
_BLOCKS = (16, 32, 64, 128, 256, 512, 1024)


def _filled(steps: FormulaSteps) -> Array:
    """The values of each group, padded with zeros to a power of two."""
    return np.pad(steps.data, ((0, 0), (0, (1 << (steps.n - 1).bit_length()) - steps.n)))


def _in_blocks(rows: Array, block: int) -> Array:
    """The values in whole blocks; all values if there are fewer than one block."""
    n = rows.shape[1]
    return rows[:, : n - n % block] if n > block else rows


def _mean_of_blocks(steps: FormulaSteps, block: int) -> Array:
    return _in_blocks(steps.data, block).sum(axis=1, keepdims=True) / steps.n


def _variance_of_blocks(steps: FormulaSteps, block: int) -> Array:
    deviations = steps.data - (_mean_of_blocks(steps, block) if steps.case.record.centred else 0.0)
    return np.square(_in_blocks(deviations, block)).sum(axis=1, keepdims=True) / steps.n


#: By group, the number of the group whose statistics may have been used instead.
_Neighbour = Callable[[FormulaSteps], Array]


def _of_sample(move: Callable[[Array, int], Array]) -> _Neighbour:
    """The same group of another sample; its own if all samples are in one group."""

    def by(steps: FormulaSteps) -> Array:
        samples = steps.x.shape[0] if steps.case.record.groups is Groups.SAMPLE_CHANNELS else 1
        own, each = np.arange(steps.count), max(steps.count // samples, 1)
        return move(own // each, samples) * each + own % each

    return by


_NEIGHBOURS: tuple[tuple[str, _Neighbour], ...] = (
    ("the first group", lambda steps: np.zeros(steps.count, int)),
    ("the last group", lambda steps: np.full(steps.count, steps.count - 1)),
    ("the group before", lambda steps: (np.arange(steps.count) - 1) % steps.count),
    ("the group after", lambda steps: (np.arange(steps.count) + 1) % steps.count),
    ("the same group of the first sample", _of_sample(lambda own, samples: own * 0)),
    ("the same group of the last sample", _of_sample(lambda own, samples: own * 0 + samples - 1)),
    ("the same group of the sample before", _of_sample(lambda own, samples: (own - 1) % samples)),
    ("the same group of the sample after", _of_sample(lambda own, samples: (own + 1) % samples)),
)


def _neighbour(column: Column, by: _Neighbour) -> Column:
    return lambda steps: column(steps)[by(steps)]


def _over_samples(column: Column) -> Column:
    """The mean of a statistic over the same group of all samples; the statistic itself if there are no such groups."""

    def averaged(steps: FormulaSteps) -> Array:
        if steps.case.record.groups is not Groups.SAMPLE_CHANNELS:
            return column(steps)
        each = column(steps).reshape(steps.x.shape[0], -1)
        return np.broadcast_to(each.mean(axis=0), each.shape).reshape(-1, 1)

    return averaged


def _of_channels(steps: FormulaSteps) -> Array:
    """The values of each group by channel; as single values if the group is not a block of channels."""
    width = steps.case.layout.width if steps.case.record.groups is Groups.SAMPLE_CHANNELS else 1
    return steps.data.reshape(steps.count, width or 1, -1)


def _mean_of(steps: FormulaSteps) -> Array:
    return steps.mean


def _variance_of(steps: FormulaSteps) -> Array:
    return steps.variance


def _running(name: str) -> Column:
    """A running statistic that batch_norm is given; NaN for other operators."""

    def column(steps: FormulaSteps) -> Array:
        value = steps.given(name)
        return np.full((steps.count, 1), np.nan) if value is None else value.reshape(-1, 1)

    return column


_CENTRES: tuple[tuple[str, Column], ...] = (
    ("", _mean_of),
    ("the running mean", _running("running_mean")),
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
    *((f"the mean of {words}", _mean_of_some(keep)) for words, keep in _SOME),
    *((f"the mean of {words}", _neighbour(_mean_of, by)) for words, by in _NEIGHBOURS),
    ("the mean of the same group over all samples", _over_samples(_mean_of)),
    ("the mean of the first channel of the group", lambda steps: _mean(_of_channels(steps)[:, 0])),
    ("the sum divided by n rounded up to a power of two", lambda steps: _mean(_filled(steps))),
    (
        "the sum divided by the number of samples",
        lambda steps: steps.mean * (steps.n / steps.x.shape[0]) if steps.training else steps.mean,
    ),
    *(
        (
            f"the sum over whole blocks of {block} values, divided by n,",
            lambda steps, block=block: _mean_of_blocks(steps, block),
        )
        for block in _BLOCKS
    ),
)

#: Replacements for the variance; in rms_norm, for the mean square.
_SPREADS: tuple[tuple[str, Column], ...] = (
    ("", _variance_of),
    ("the running variance", _running("running_var")),
    ("the variance with the divisor n - 1", lambda steps: _over(steps, steps.n - 1)),
    ("the variance with the divisor max(n - 1, 1)", lambda steps: _over(steps, max(steps.n - 1, 1))),
    ("the variance with the divisor n + 1", lambda steps: _over(steps, steps.n + 1)),
    ("the variance with the divisor n - 2", lambda steps: _over(steps, max(steps.n - 2, 1))),
    ("the variance with the divisor n + 2", lambda steps: _over(steps, steps.n + 2)),
    *(
        (
            f"the variance with n rounded up to a multiple of {block}",
            lambda steps, block=block: _over(steps, _up(steps.n, block)),
        )
        for block in (2, 4, 8, 16, 32, 64, 128)
    ),
    ("the sum of the squared deviations", lambda steps: _over(steps, 1)),
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
    *((f"the variance of {words}", _variance_of_some(keep)) for words, keep in _SOME),
    *((f"the variance of {words}", _neighbour(_variance_of, by)) for words, by in _NEIGHBOURS),
    ("the mean of the variances of the same group over all samples", _over_samples(_variance_of)),
    ("the mean of the variances of its channels", lambda steps: _mean(_of_channels(steps).var(axis=2))),
    ("the variance of the first channel of the group", lambda steps: _var(_of_channels(steps)[:, 0])),
    (
        "the variance plus (m - n) mean^2 / n, m being n rounded up to a power of two,",
        lambda steps: steps.variance + steps.mean**2 * ((_filled(steps).shape[1] - steps.n) / steps.n),
    ),
    ("the variance of the group filled up with zeros to a power of two", lambda steps: _var(_filled(steps))),
    *(
        (
            f"the squared deviations of whole blocks of {block} values, divided by n,",
            lambda steps, block=block: _variance_of_blocks(steps, block),
        )
        for block in _BLOCKS
    ),
    ("1", lambda steps: np.ones_like(steps.variance)),
)

#: Replacements for gamma. Below, _MOVED has those for gamma or beta.
_GAINS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("gamma", lambda gamma: gamma),
    ("1", np.ones_like),
    ("1 + gamma", lambda gamma: 1 + gamma),
    ("|gamma|", np.abs),
    ("gamma^2", np.square),
    ("-gamma", np.negative),
    ("1 / gamma", lambda gamma: 1 / gamma),
    ("exp(gamma)", np.exp),
    ("tanh(gamma)", np.tanh),
    ("the root of |gamma|", lambda gamma: np.sqrt(np.abs(gamma))),
    ("gamma rounded to integers", np.rint),
    ("max(gamma, 0)", lambda gamma: np.maximum(gamma, 0)),
)
_MOVED: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("{0} of the feature before", lambda value: np.roll(value, 1, axis=-1)),
    ("{0} of the feature after", lambda value: np.roll(value, -1, axis=-1)),
    ("{0} in reverse order", lambda value: value.reshape(-1)[::-1].reshape(value.shape)),
    ("{0} with its axes in reverse order", lambda value: value.T.reshape(value.shape)),
    ("{0} in reverse order along the last axis", lambda value: value[..., ::-1]),
    ("the first value of {0}", lambda value: np.full_like(value, value.reshape(-1)[0])),
    ("the last value of {0}", lambda value: np.full_like(value, value.reshape(-1)[-1])),
    ("the mean of {0}", lambda value: np.full_like(value, value.mean())),
)
#: Replacements for beta, as functions of beta and gamma.
_SHIFTS: tuple[tuple[str, Callable[[Array, Array], Array]], ...] = (
    ("beta", lambda beta, gamma: beta),
    ("0", lambda beta, gamma: np.zeros_like(beta)),
    ("-beta", lambda beta, gamma: -beta),
    ("gamma beta", lambda beta, gamma: gamma * beta),
    ("|gamma| beta", lambda beta, gamma: np.abs(gamma) * beta),
    ("gamma^2 beta", lambda beta, gamma: np.square(gamma) * beta),
    ("2 beta", lambda beta, gamma: 2 * beta),
    ("beta / 2", lambda beta, gamma: beta / 2),
    ("|beta|", lambda beta, gamma: np.abs(beta)),
    ("beta^2", lambda beta, gamma: np.square(beta)),
    ("max(beta, 0)", lambda beta, gamma: np.maximum(beta, 0)),
    ("1 + beta", lambda beta, gamma: 1 + beta),
)


def _parameter(one: ObservedResult, name: str, change: Callable[[Array], Array], absent: float) -> Array:
    value = one.steps.given(name)
    if value is None:
        return np.full(one.steps.x.shape, absent)
    laid = change(value)
    return np.broadcast_to(laid if one.case.record.composed else one.case.layout.spread(laid), one.steps.x.shape)


def parameter_relations() -> Iterator[LinearRelation]:
    """y with something else in place of gamma, of beta, or of both."""
    gains = [*_GAINS, *((words.format("gamma"), change) for words, change in _MOVED)]
    moved = ((words.format("beta"), change) for words, change in _MOVED)
    shifts = [*_SHIFTS, *((words, lambda beta, gamma, change=change: change(beta)) for words, change in moved)]
    for gain, change in gains:
        for shift, other in shifts:
            if (gain, shift) == ("gamma", "beta"):
                continue
            places = [f"{new} in place of {old}" for new, old in ((gain, "gamma"), (shift, "beta")) if new != old]
            yield LinearRelation(f"what the formula gives with {' and '.join(places)}", _with(change, other))
    words = "what the formula gives with gamma and beta of the first value of each group throughout"
    yield LinearRelation(words, _of_the_first)
    yield LinearRelation("what the formula gives with |gamma| + eps in place of gamma", _magnitude_and_eps)
    yield LinearRelation("gamma (xhat + beta)", lambda one: one.steps.gamma * (one.steps.xhat + one.steps.beta))
    yield LinearRelation("beta xhat + gamma", _exchanged)


def _with(gain: Callable[[Array], Array], shift: Callable[[Array, Array], Array]) -> Callable[[ObservedResult], Array]:
    def made(one: ObservedResult) -> Array:
        gamma = one.steps.given("gamma")
        beside = np.ones(1) if gamma is None else gamma
        moved = _parameter(one, "beta", lambda beta: shift(beta, beside), 0.0)
        return _parameter(one, "gamma", gain, 1.0) * one.steps.xhat + moved

    return made


def _of_the_first(one: ObservedResult) -> Array:
    steps = one.steps
    gamma, beta = (steps.back(steps.rows(value)[:, :1]) for value in (steps.gamma, steps.beta))
    return gamma * steps.xhat + beta


def _magnitude_and_eps(one: ObservedResult) -> Array:
    steps = one.steps
    return (
        steps.normalised
        if steps.given("gamma") is None
        else (np.abs(steps.gamma) + steps.eps) * steps.xhat + steps.beta
    )


def _exchanged(one: ObservedResult) -> Array | None:
    gamma, beta = one.steps.given("gamma"), one.steps.given("beta")
    return None if gamma is None or beta is None else one.steps.beta * one.steps.xhat + one.steps.gamma


# The spread that was divided by --------------------------------------------------------------------------------


@attrs.frozen
class _EpsPlacement:
    """Where eps is added to a spread: transformed(V) = base + k slope, where V is the value under the root."""

    words: Callable[[str], str]
    transformed: Callable[[Array], Array]
    base: Callable[[Array, float], Array]
    slope: Callable[[Array, float], Array]
    back: Callable[[Array], Array]
    #: The k that is right if the spread is right.
    right: float
    #: For a limit: V is the larger (1) or the smaller (-1) of base and k slope, plus ``added``.
    limit: int = 0
    added: Callable[[Array, float], Array] | None = None


def _identity(value: Array) -> Array:
    return value


def _multiple(k: str, of: str) -> str:
    if k == "1":
        return of
    return f"{of} / {k[2:]}" if k.startswith("1/") else f"{k} {of}"


def _variance_itself(q: Array, eps: float) -> Array:
    return q


def _eps_itself(q: Array, eps: float) -> Array:
    return np.full_like(q, eps)


def _ones(q: Array, eps: float) -> Array:
    return np.ones_like(q)


def _zeros(q: Array, eps: float) -> Array:
    return np.zeros_like(q)


def _inside(words: Callable[[str], str], right: float, slope: Callable[[Array, float], float]) -> _EpsPlacement:
    """A multiple of a number is added under the root."""
    return _EpsPlacement(
        words, _identity, _variance_itself, lambda q, eps: np.full_like(q, slope(q, eps)), _identity, right
    )


def _outside(words: Callable[[str], str], slope: Callable[[float], float]) -> _EpsPlacement:
    """A multiple of a number is added to the root."""
    return _EpsPlacement(
        words, np.sqrt, lambda q, eps: np.sqrt(q), lambda q, eps: np.full_like(q, slope(eps)), np.square, np.inf
    )


def _limits() -> Iterator[_EpsPlacement]:
    """Limits that keep the variance, or eps, from falling or from growing."""

    def both(q: Array, eps: float) -> Array:
        return q + eps

    for limit, word in ((1, "max"), (-1, "min")):
        rest: dict[str, Any] = {"right": np.inf, "limit": limit}
        yield _EpsPlacement(
            lambda k, w=word: f"sqrt({w}(var, {_multiple(k, 'eps')}))",
            _identity,
            _variance_itself,
            _eps_itself,
            _identity,
            **rest,
        )
        yield _EpsPlacement(lambda k, w=word: f"sqrt({w}(var + eps, {k}))", _identity, both, _ones, _identity, **rest)
        yield _EpsPlacement(
            lambda k, w=word: f"sqrt({w}(var, {k}) + eps)",
            _identity,
            _variance_itself,
            _ones,
            _identity,
            **rest,
            added=_eps_itself,
        )
        yield _EpsPlacement(
            lambda k, w=word: f"sqrt(var + {w}(eps, {k}))",
            _identity,
            _eps_itself,
            _ones,
            _identity,
            **rest,
            added=_variance_itself,
        )


#: The places, the right one first. The words name what a group is divided by; q is the variance.
_EPS_PLACEMENTS: tuple[_EpsPlacement, ...] = (
    _inside(lambda k: f"sqrt(var + {_multiple(k, 'eps')})" if k != "0" else "sqrt(var)", 1.0, lambda q, eps: eps),
    _EpsPlacement(
        lambda k: f"sqrt({_multiple(k, 'var')} + eps)", _identity, _eps_itself, _variance_itself, _identity, 1.0
    ),
    _inside(lambda k: f"sqrt(var + {k})", np.inf, lambda q, eps: 1.0),
    _EpsPlacement(lambda k: f"sqrt({k} (var + eps))", _identity, _zeros, lambda q, eps: q + eps, _identity, 1.0),
    _outside(lambda k: f"sqrt(var) + {_multiple(k, 'eps')}", lambda eps: eps),
    _outside(lambda k: f"sqrt(var) + {_multiple(k, 'sqrt(eps)')}", np.sqrt),
    _outside(lambda k: f"sqrt(var) + {k}", lambda eps: 1.0),
    _EpsPlacement(
        lambda k: f"sqrt(var + eps)^{f'({k})' if '/' in k else k}",
        np.log,
        _zeros,
        lambda q, eps: np.log(q + eps),
        np.exp,
        1.0,
    ),
    *_limits(),
    *(
        _inside(
            lambda k, words=words: f"sqrt(var + {_multiple(k, words)})", np.inf, lambda q, eps, power=power: eps**power
        )
        for words, power in (("eps^2", 2), ("eps^3", 3), ("sqrt(eps)", 0.5))
    ),
    *(
        _inside(
            lambda k, dtype=dtype: f"sqrt(var + {_multiple(k, f'eps rounded to {dtype}')})",
            np.inf,
            lambda q, eps, dtype=dtype: float(FORMATS[dtype].dtype.type(eps)),
        )
        for dtype in ("float16", "bfloat16")
    ),
)


def spread_relations(seen: Sequence[ObservedResult]) -> Iterator[LinearRelation]:
    """Each centre and spread with which the formula returns y on everything seen, the plainest first."""
    # Results that are far off exclude most, so they come first.
    seen = sorted(seen, key=lambda one: not one.clearly_wrong)
    tried = 0
    for centre, middle in _CENTRES:
        bounds = list(_all_bounds(seen, middle))
        if len(bounds) < len(seen):
            continue
        for relation in _spreads(centre, middle, seen, bounds):
            if relation.holds(0.0, seen, [np.ones(one.got.shape, bool) for one in seen]):
                yield relation
            tried += 1
            if tried == _MOST_TRIED:
                return


def _all_bounds(seen: Sequence[ObservedResult], middle: Column) -> Iterator[tuple[Array, Array]]:
    """The bounds of each, up to the first that has none."""
    for one in seen:
        found = _bounds(one, middle)
        if found is None:
            return
        yield found


def _bounds(one: ObservedResult, middle: Column) -> tuple[Array, Array] | None:
    """Bounds of the square of the root that divided each group; None if no root fits."""
    steps = one.steps
    if np.isnan(middle(steps)).all():
        return None
    top = steps.rows(one.got - steps.beta)
    below = steps.rows(steps.gamma) * (steps.data - middle(steps))
    slack = steps.rows(np.where(one.judged, one.slack, np.inf))
    slack = slack + EXTRA_ROUNDINGS * one.values.unit * np.abs(steps.rows(np.broadcast_to(steps.beta, one.got.shape)))
    still = below == 0
    ratio = np.abs(top).max(axis=1, keepdims=True) / np.abs(below * steps.r).max(axis=1, keepdims=True)
    ratio = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    if middle is not _mean_of:
        largest = np.abs(steps.data).max() * (steps.n + EXTRA_ROUNDINGS) * one.values.unit
        slack = slack + np.abs(steps.rows(steps.gamma)) * largest * np.where(np.isfinite(steps.r), steps.r, 0.0)
    slack = slack * ratio
    # Values that are not finite bound nothing. The relation itself is tested on them in the end.
    lost = ~np.isfinite(top)
    slack = np.where(lost, np.inf, slack)
    top = np.where(lost, 0.0, top)
    ends = np.where(still, -np.inf, (top - slack) / below), np.where(still, np.inf, (top + slack) / below)
    low = np.nan_to_num(np.minimum(*ends), nan=-np.inf).max(axis=1, keepdims=True)
    high = np.nan_to_num(np.maximum(*ends), nan=np.inf).min(axis=1, keepdims=True)
    if (low > high).any() or (high < 0).any():
        return None
    low = np.maximum(low, 0.0)
    return 1 / np.square(high), 1 / np.square(low)


def _spreads(
    centre: str, middle: Column, seen: Sequence[ObservedResult], bounds: Sequence[tuple[Array, Array]]
) -> Iterator[LinearRelation]:
    """The relations that every bound allows, the plainest first."""
    spreads = [(spread, column, [column(one.steps) for one in seen]) for spread, column in _SPREADS]
    spreads = [one for one in spreads if not all(np.isnan(values).all() for values in one[2])]
    # All spreads are tried together on each observation, which takes a tenth of the time.
    stacked = [
        np.stack([np.broadcast_to(columns[place], low.shape) for _, _, columns in spreads])
        for place, (low, _) in enumerate(bounds)
    ]
    allowed = [_allowed(place, seen, stacked, bounds) for place in _EPS_PLACEMENTS]
    for which, (spread, column, _) in enumerate(spreads):
        for place, (low, high, bounded) in zip(_EPS_PLACEMENTS, allowed, strict=True):
            number = _number(place, Interval(float(low[which]), float(high[which]))) if bounded[which] else None
            if number is None or (not centre and not spread and number == place.right):
                continue
            made, more = _y_with(middle, column, place, number), _amplified(column, place, number)
            beside = _rounded(column, place, number) if centre or spread else None
            yield LinearRelation(_spread_words(centre, spread, place, number), made, amplified=more, rounded=beside)


def _allowed(
    place: _EpsPlacement,
    seen: Sequence[ObservedResult],
    columns: Sequence[Array],
    bounds: Sequence[tuple[Array, Array]],
) -> tuple[Array, Array, Array]:
    """
    For each of several spreads, the least and the largest number that all bounds allow, and whether any bounds it.

    The least is above the largest, or is NaN, if none is allowed. ``columns``: for each observation, shape (spreads,
    groups, 1).
    """
    count = len(columns[0])
    lowest, highest, bounded = np.full(count, -np.inf), np.full(count, np.inf), np.zeros(count, bool)
    for one, column, (low, high) in zip(seen, columns, bounds, strict=True):
        eps = one.steps.eps
        base, slope = place.base(column, eps), place.slope(column, eps)
        least, most = place.transformed(low), place.transformed(high)
        if place.limit:
            below, above = _limited(place, column, eps, base, (least, most))
            lows = np.where(np.isnan(below), -np.inf, below / slope)
            highs = np.where(np.isnan(above), np.inf, above / slope)
            bounded |= (np.isfinite(below) & np.isfinite(above) & (slope > 0)).any(axis=(1, 2))
        else:
            least, most = least - base, most - base
            lost = np.isnan(least) | np.isnan(most) | ~np.isfinite(slope)
            still = (slope == 0) & ~lost
            excluded = still & ((least > 0) | (most < 0))
            free, ends = still | lost, (least / slope, most / slope)
            lows = np.where(excluded, np.nan, np.where(free, -np.inf, np.minimum(*ends)))
            highs = np.where(free, np.inf, np.maximum(*ends))
            bounded |= ~free.all(axis=(1, 2))
        lowest, highest = np.maximum(lowest, lows.max(axis=(1, 2))), np.minimum(highest, highs.min(axis=(1, 2)))
        if not (lowest <= highest).any():
            break
    return lowest, highest, bounded


def _number(place: _EpsPlacement, allowed: Interval) -> float | None:
    """The plainest of the allowed numbers; None if there is none, or if they are too many to mean one."""
    if allowed.empty:
        return None
    if np.isfinite(place.right) and allowed.low <= place.right <= allowed.high:
        return place.right
    known = allowed.known(place.right if np.isfinite(place.right) else 0.0)
    if not np.isfinite(allowed.low) or not np.isfinite(allowed.high):
        return None
    if not known and not allowed.low <= 0 <= allowed.high:
        return None
    number = simplest(allowed)
    return number if not number or _SMALLEST_NUMBER <= abs(number) <= _LARGEST_NUMBER else None


def _limited(
    place: _EpsPlacement, column: Array, eps: float, base: Array, bounds: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Bounds of k slope, if the larger or smaller of it and base has to lie within the bounds."""
    added = 0.0 if place.added is None else place.added(column, eps)
    least, most = bounds[0] - added, bounds[1] - added
    if place.limit > 0:
        return np.where(least > base, least, -np.inf), most
    return least, np.where(most < base, most, np.inf)


def _root(steps: FormulaSteps, column: Column, place: _EpsPlacement, number: float) -> Array:
    """The root that each group was divided by."""
    spread = column(steps)
    base, moved = place.base(spread, steps.eps), number * place.slope(spread, steps.eps)
    if place.limit:
        limited = np.maximum(base, moved) if place.limit > 0 else np.minimum(base, moved)
        return np.sqrt(limited + (0.0 if place.added is None else place.added(spread, steps.eps)))
    return np.sqrt(place.back(base + moved))


def _amplified(column: Column, place: _EpsPlacement, number: float) -> Callable[[ObservedResult], Array]:
    return lambda one: one.steps.back(1 / (one.steps.r * _root(one.steps, column, place, number)))


def _rounded(column: Column, place: _EpsPlacement, number: float) -> Callable[[ObservedResult], Array]:
    """
    The roundings of another centre or spread. A centre rounds a sum of all values, and its difference from each. The
    roundings of a spread count where the spread itself is no larger.
    """

    def made(one: ObservedResult) -> Array:
        steps, root = one.steps, _root(one.steps, column, place, number)
        largest = np.abs(steps.data).max() * (steps.n + EXTRA_ROUNDINGS) * one.values.unit
        beside = np.abs(steps.rows(steps.xhat)) / steps.r * np.square(largest / root) / root
        return np.abs(steps.gamma) * steps.back(largest / root + beside)

    return made


def _y_with(middle: Column, column: Column, place: _EpsPlacement, number: float) -> Callable[[ObservedResult], Array]:
    def made(one: ObservedResult) -> Array:
        steps = one.steps
        xhat = (steps.data - middle(steps)) / _root(steps, column, place, number)
        return steps.gamma * steps.back(xhat) + steps.beta

    return made


def _spread_words(centre: str, spread: str, place: _EpsPlacement, number: float) -> str:
    """In words, what replaces what."""
    changed = []
    if centre:
        changed.append(f"{centre} in place of the mean")
    if spread:
        changed.append(f"{spread} in place of var")
    if number != place.right or not np.isfinite(place.right):
        changed.append(f"{place.words(written(number))} in place of sqrt(var + eps)")
    return f"what the formula gives with {' and '.join(changed)}"
