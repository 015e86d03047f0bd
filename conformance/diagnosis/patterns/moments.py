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

from ....spec.operators import Groups
from .facts import Facts
from .numbers import Interval, simplest, written
from .observing import Seen
from .relation import Relation, said

Array = np.ndarray
#: The range of numbers that somebody may have written into a formula. A number outside comes from the data.
_LEAST, _MOST = 1e-16, 1e4
#: After this many relations that all bounds allow but the values do not, the bounds say too little.
_MOST_TRIED = 20
#: One number for each group, as a column.
Column = Callable[[Facts], Array]


def _over(facts: Facts, divisor: float) -> Array:
    """The variance with another divisor; 0/0 if that is 0."""
    return facts.variance * facts.n / np.float64(divisor)


def _up(n: int, block: int) -> int:
    return -(-n // block) * block


def _mean_of_some(keep: Callable[[Array], Array]) -> Column:
    """The mean of some of the values of each group; of all, if none would be left."""
    return lambda facts: _mean(_kept(keep, facts))


def _variance_of_some(keep: Callable[[Array], Array]) -> Column:
    """The variance of some of the values; their mean square for an operator that does not centre."""
    return lambda facts: (_var if facts.case.record.centred else _mean_square)(_kept(keep, facts))


def _kept(keep: Callable[[Array], Array], facts: Facts) -> Array:
    kept = keep(facts.data)
    return kept if kept.shape[1] else facts.data


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


def _filled(facts: Facts) -> Array:
    """The values of each group, padded with zeros to a power of two."""
    return np.pad(facts.data, ((0, 0), (0, (1 << (facts.n - 1).bit_length()) - facts.n)))


def _in_blocks(rows: Array, block: int) -> Array:
    """The values in whole blocks; all values if there are fewer than one block."""
    n = rows.shape[1]
    return rows[:, : n - n % block] if n > block else rows


def _mean_of_blocks(facts: Facts, block: int) -> Array:
    return _in_blocks(facts.data, block).sum(axis=1, keepdims=True) / facts.n


def _variance_of_blocks(facts: Facts, block: int) -> Array:
    deviations = facts.data - (_mean_of_blocks(facts, block) if facts.case.record.centred else 0.0)
    return np.square(_in_blocks(deviations, block)).sum(axis=1, keepdims=True) / facts.n


#: By group, the number of the group whose statistics may have been used instead.
_Neighbour = Callable[[Facts], Array]


def _of_sample(move: Callable[[Array, int], Array]) -> _Neighbour:
    """The same group of another sample; its own if all samples are in one group."""

    def by(facts: Facts) -> Array:
        samples = facts.x.shape[0] if facts.case.record.groups is Groups.SAMPLE_CHANNELS else 1
        own, each = np.arange(facts.count), max(facts.count // samples, 1)
        return move(own // each, samples) * each + own % each

    return by


_NEIGHBOURS: tuple[tuple[str, _Neighbour], ...] = (
    ("the first group", lambda facts: np.zeros(facts.count, int)),
    ("the last group", lambda facts: np.full(facts.count, facts.count - 1)),
    ("the group before", lambda facts: (np.arange(facts.count) - 1) % facts.count),
    ("the group after", lambda facts: (np.arange(facts.count) + 1) % facts.count),
    ("the same group of the first sample", _of_sample(lambda own, samples: own * 0)),
    ("the same group of the last sample", _of_sample(lambda own, samples: own * 0 + samples - 1)),
    ("the same group of the sample before", _of_sample(lambda own, samples: (own - 1) % samples)),
    ("the same group of the sample after", _of_sample(lambda own, samples: (own + 1) % samples)),
)


def _neighbour(column: Column, by: _Neighbour) -> Column:
    return lambda facts: column(facts)[by(facts)]


def _over_samples(column: Column) -> Column:
    """The mean of a statistic over the same group of all samples; the statistic itself if there are no such groups."""

    def averaged(facts: Facts) -> Array:
        if facts.case.record.groups is not Groups.SAMPLE_CHANNELS:
            return column(facts)
        each = column(facts).reshape(facts.x.shape[0], -1)
        return np.broadcast_to(each.mean(axis=0), each.shape).reshape(-1, 1)

    return averaged


def _of_channels(facts: Facts) -> Array:
    """The values of each group by channel; as single values if the group is not a block of channels."""
    width = facts.case.layout.width if facts.case.record.groups is Groups.SAMPLE_CHANNELS else 1
    return facts.data.reshape(facts.count, width or 1, -1)


def _mean_of(facts: Facts) -> Array:
    return facts.mean


def _variance_of(facts: Facts) -> Array:
    return facts.variance


def _running(name: str) -> Column:
    """A running statistic that batch_norm is given; NaN for other operators."""

    def column(facts: Facts) -> Array:
        value = facts.given(name)
        return np.full((facts.count, 1), np.nan) if value is None else value.reshape(-1, 1)

    return column


_CENTRES: tuple[tuple[str, Column], ...] = (
    ("", _mean_of),
    ("the running mean", _running("running_mean")),
    ("no mean at all", lambda facts: np.zeros_like(facts.mean)),
    ("the mean of the group", lambda facts: _mean(facts.data)),
    ("the median", lambda facts: np.median(facts.data, axis=1, keepdims=True)),
    ("the first value of the group", lambda facts: facts.data[:, :1]),
    ("the last value of the group", lambda facts: facts.data[:, -1:]),
    ("the smallest value of the group", lambda facts: facts.data.min(axis=1, keepdims=True)),
    ("the largest value of the group", lambda facts: facts.data.max(axis=1, keepdims=True)),
    (
        "half the sum of the largest and the smallest value",
        lambda facts: (facts.data.max(axis=1, keepdims=True) + facts.data.min(axis=1, keepdims=True)) / 2,
    ),
    ("the mean of all of x", lambda facts: np.full_like(facts.mean, facts.data.mean())),
    ("the sum divided by n - 1", lambda facts: facts.mean * (facts.n / max(facts.n - 1, 1))),
    ("the sum divided by n + 1", lambda facts: facts.mean * (facts.n / (facts.n + 1))),
    ("the mean without its sign", lambda facts: np.abs(facts.mean)),
    ("twice the mean", lambda facts: 2 * facts.mean),
    ("half the mean", lambda facts: facts.mean / 2),
    ("minus the mean", lambda facts: -facts.mean),
    *((f"the mean of {words}", _mean_of_some(keep)) for words, keep in _SOME),
    *((f"the mean of {words}", _neighbour(_mean_of, by)) for words, by in _NEIGHBOURS),
    ("the mean of the same group over all samples", _over_samples(_mean_of)),
    ("the mean of the first channel of the group", lambda facts: _mean(_of_channels(facts)[:, 0])),
    ("the sum divided by n rounded up to a power of two", lambda facts: _mean(_filled(facts))),
    (
        "the sum divided by the number of samples",
        lambda facts: facts.mean * (facts.n / facts.x.shape[0]) if facts.training else facts.mean,
    ),
    *(
        (
            f"the sum over whole blocks of {block} values, divided by n,",
            lambda facts, block=block: _mean_of_blocks(facts, block),
        )
        for block in _BLOCKS
    ),
)

#: Replacements for the variance; in rms_norm, for the mean square.
_SPREADS: tuple[tuple[str, Column], ...] = (
    ("", _variance_of),
    ("the running variance", _running("running_var")),
    ("the variance with the divisor n - 1", lambda facts: _over(facts, facts.n - 1)),
    ("the variance with the divisor max(n - 1, 1)", lambda facts: _over(facts, max(facts.n - 1, 1))),
    ("the variance with the divisor n + 1", lambda facts: _over(facts, facts.n + 1)),
    ("the variance with the divisor n - 2", lambda facts: _over(facts, max(facts.n - 2, 1))),
    ("the variance with the divisor n + 2", lambda facts: _over(facts, facts.n + 2)),
    *(
        (
            f"the variance with n rounded up to a multiple of {block}",
            lambda facts, block=block: _over(facts, _up(facts.n, block)),
        )
        for block in (2, 4, 8, 16, 32, 64, 128)
    ),
    ("the sum of the squared deviations", lambda facts: _over(facts, 1)),
    ("the variance of the group", lambda facts: _var(facts.data)),
    ("the mean square", lambda facts: _mean(np.square(facts.data))),
    ("the square of the mean absolute value", lambda facts: _mean(np.abs(facts.data)) ** 2),
    ("the square of the largest magnitude", lambda facts: np.square(facts.data).max(axis=1, keepdims=True)),
    ("the square of the mean absolute deviation", lambda facts: _mean(np.abs(facts.data - facts.mean)) ** 2),
    (
        "the square of the largest deviation",
        lambda facts: np.square(facts.data - facts.mean).max(axis=1, keepdims=True),
    ),
    ("the square of the range", lambda facts: np.ptp(facts.data, axis=1, keepdims=True) ** 2),
    (
        "the square of the median absolute deviation",
        lambda facts: (
            np.median(np.abs(facts.data - np.median(facts.data, axis=1, keepdims=True)), axis=1, keepdims=True) ** 2
        ),
    ),
    ("the variance plus the squared mean", lambda facts: facts.variance + facts.mean**2),
    ("the deviation", lambda facts: np.sqrt(facts.variance)),
    ("the squared variance", lambda facts: facts.variance**2),
    ("the variance of all of x", lambda facts: np.full_like(facts.variance, facts.data.var())),
    ("the mean of all variances", lambda facts: np.full_like(facts.variance, facts.variance.mean())),
    ("the largest of all variances", lambda facts: np.full_like(facts.variance, facts.variance.max())),
    *((f"the variance of {words}", _variance_of_some(keep)) for words, keep in _SOME),
    *((f"the variance of {words}", _neighbour(_variance_of, by)) for words, by in _NEIGHBOURS),
    ("the mean of the variances of the same group over all samples", _over_samples(_variance_of)),
    ("the mean of the variances of its channels", lambda facts: _mean(_of_channels(facts).var(axis=2))),
    ("the variance of the first channel of the group", lambda facts: _var(_of_channels(facts)[:, 0])),
    (
        "the variance plus (m - n) mean^2 / n, m being n rounded up to a power of two,",
        lambda facts: facts.variance + facts.mean**2 * ((_filled(facts).shape[1] - facts.n) / facts.n),
    ),
    ("the variance of the group filled up with zeros to a power of two", lambda facts: _var(_filled(facts))),
    *(
        (
            f"the squared deviations of whole blocks of {block} values, divided by n,",
            lambda facts, block=block: _variance_of_blocks(facts, block),
        )
        for block in _BLOCKS
    ),
    ("1", lambda facts: np.ones_like(facts.variance)),
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


def _laid(one: Seen, name: str, change: Callable[[Array], Array], absent: float) -> Array:
    value = one.facts.given(name)
    if value is None:
        return np.full(one.facts.x.shape, absent)
    laid = change(value)
    return np.broadcast_to(laid if one.case.record.composed else one.case.layout.spread(laid), one.facts.x.shape)


def parameter_relations() -> Iterator[Relation]:
    """y with something else in place of gamma, of beta, or of both."""
    gains = [*_GAINS, *((words.format("gamma"), change) for words, change in _MOVED)]
    moved = ((words.format("beta"), change) for words, change in _MOVED)
    shifts = [*_SHIFTS, *((words, lambda beta, gamma, change=change: change(beta)) for words, change in moved)]
    for gain, change in gains:
        for shift, other in shifts:
            if (gain, shift) == ("gamma", "beta"):
                continue
            places = [f"{new} in place of {old}" for new, old in ((gain, "gamma"), (shift, "beta")) if new != old]
            yield Relation(said(f"what the formula gives with {' and '.join(places)}"), _with(change, other))
    words = "what the formula gives with gamma and beta of the first value of each group throughout"
    yield Relation(said(words), _of_the_first)
    yield Relation(said("what the formula gives with |gamma| + eps in place of gamma"), _magnitude_and_eps)
    yield Relation(said("gamma (xhat + beta)"), lambda one: one.facts.gamma * (one.facts.xhat + one.facts.beta))
    yield Relation(said("beta xhat + gamma"), _exchanged)


def _with(gain: Callable[[Array], Array], shift: Callable[[Array, Array], Array]) -> Callable[[Seen], Array]:
    def made(one: Seen) -> Array:
        gamma = one.facts.given("gamma")
        beside = np.ones(1) if gamma is None else gamma
        moved = _laid(one, "beta", lambda beta: shift(beta, beside), 0.0)
        return _laid(one, "gamma", gain, 1.0) * one.facts.xhat + moved

    return made


def _of_the_first(one: Seen) -> Array:
    facts = one.facts
    gamma, beta = (facts.back(facts.rows(value)[:, :1]) for value in (facts.gamma, facts.beta))
    return gamma * facts.xhat + beta


def _magnitude_and_eps(one: Seen) -> Array:
    facts = one.facts
    return (
        facts.normalised
        if facts.given("gamma") is None
        else (np.abs(facts.gamma) + facts.eps) * facts.xhat + facts.beta
    )


def _exchanged(one: Seen) -> Array | None:
    gamma, beta = one.facts.given("gamma"), one.facts.given("beta")
    return None if gamma is None or beta is None else one.facts.beta * one.facts.xhat + one.facts.gamma


# The spread that was divided by --------------------------------------------------------------------------------


@attrs.frozen
class _Place:
    """Where eps stands beside a spread: transformed(V) = base + k slope, where V is the value under the root."""

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


def _same(value: Array) -> Array:
    return value


def _multiple(k: str, of: str) -> str:
    if k == "1":
        return of
    return f"{of} / {k[2:]}" if k.startswith("1/") else f"{k} {of}"


def _plain(q: Array, eps: float) -> Array:
    return q


def _given(q: Array, eps: float) -> Array:
    return np.full_like(q, eps)


def _ones(q: Array, eps: float) -> Array:
    return np.ones_like(q)


def _zeros(q: Array, eps: float) -> Array:
    return np.zeros_like(q)


def _inside(words: Callable[[str], str], right: float, slope: Callable[[Array, float], float]) -> _Place:
    """A multiple of a number is added under the root."""
    return _Place(words, _same, _plain, lambda q, eps: np.full_like(q, slope(q, eps)), _same, right)


def _outside(words: Callable[[str], str], slope: Callable[[float], float]) -> _Place:
    """A multiple of a number is added to the root."""
    return _Place(
        words, np.sqrt, lambda q, eps: np.sqrt(q), lambda q, eps: np.full_like(q, slope(eps)), np.square, np.inf
    )


def _limits() -> Iterator[_Place]:
    """Limits that keep the variance, or eps, from falling or from growing."""

    def both(q: Array, eps: float) -> Array:
        return q + eps

    for limit, word in ((1, "max"), (-1, "min")):
        rest: dict[str, Any] = {"right": np.inf, "limit": limit}
        yield _Place(lambda k, w=word: f"sqrt({w}(var, {_multiple(k, 'eps')}))", _same, _plain, _given, _same, **rest)
        yield _Place(lambda k, w=word: f"sqrt({w}(var + eps, {k}))", _same, both, _ones, _same, **rest)
        yield _Place(lambda k, w=word: f"sqrt({w}(var, {k}) + eps)", _same, _plain, _ones, _same, **rest, added=_given)
        yield _Place(lambda k, w=word: f"sqrt(var + {w}(eps, {k}))", _same, _given, _ones, _same, **rest, added=_plain)


#: The places, the right one first. The words name what a group is divided by; q is the variance.
_PLACES: tuple[_Place, ...] = (
    _inside(lambda k: f"sqrt(var + {_multiple(k, 'eps')})" if k != "0" else "sqrt(var)", 1.0, lambda q, eps: eps),
    _Place(lambda k: f"sqrt({_multiple(k, 'var')} + eps)", _same, _given, _plain, _same, 1.0),
    _inside(lambda k: f"sqrt(var + {k})", np.inf, lambda q, eps: 1.0),
    _Place(lambda k: f"sqrt({k} (var + eps))", _same, _zeros, lambda q, eps: q + eps, _same, 1.0),
    _outside(lambda k: f"sqrt(var) + {_multiple(k, 'eps')}", lambda eps: eps),
    _outside(lambda k: f"sqrt(var) + {_multiple(k, 'sqrt(eps)')}", np.sqrt),
    _outside(lambda k: f"sqrt(var) + {k}", lambda eps: 1.0),
    _Place(
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
    _inside(
        lambda k: f"sqrt(var + {_multiple(k, 'eps rounded to float16')})", np.inf, lambda q, eps: float(np.float16(eps))
    ),
)


def spread_relations(seen: Sequence[Seen]) -> Iterator[Relation]:
    """Each centre and spread with which the formula returns y on everything seen, the plainest first."""
    # Results that are far off exclude most, so they come first.
    seen = sorted(seen, key=lambda one: not one.telling)
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


def _all_bounds(seen: Sequence[Seen], middle: Column) -> Iterator[tuple[Array, Array]]:
    """The bounds of each, up to the first that has none."""
    for one in seen:
        found = _bounds(one, middle)
        if found is None:
            return
        yield found


def _bounds(one: Seen, middle: Column) -> tuple[Array, Array] | None:
    """Bounds of the square of the root that divided each group; None if no root fits."""
    facts = one.facts
    if np.isnan(middle(facts)).all():
        return None
    top = facts.rows(one.got - facts.beta)
    below = facts.rows(facts.gamma) * (facts.data - middle(facts))
    slack = facts.rows(np.where(one.judged, one.slack, np.inf))
    slack = slack + 8 * one.values.unit * np.abs(facts.rows(np.broadcast_to(facts.beta, one.got.shape)))
    still = below == 0
    ratio = np.abs(top).max(axis=1, keepdims=True) / np.abs(below * facts.r).max(axis=1, keepdims=True)
    ratio = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    if middle is not _mean_of:
        largest = np.abs(facts.data).max() * (facts.n + 8) * one.values.unit
        slack = slack + np.abs(facts.rows(facts.gamma)) * largest * np.where(np.isfinite(facts.r), facts.r, 0.0)
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
    centre: str, middle: Column, seen: Sequence[Seen], bounds: Sequence[tuple[Array, Array]]
) -> Iterator[Relation]:
    """The relations that every bound allows, the plainest first."""
    for spread, column in _SPREADS:
        columns = [column(one.facts) for one in seen]
        if all(np.isnan(one).all() for one in columns):
            continue
        for place in _PLACES:
            number = _number(place, seen, columns, bounds)
            if number is None or (not centre and not spread and number == place.right):
                continue
            made, more = _made(middle, column, place, number), _amplified(column, place, number)
            beside = _rounded(column, place, number) if centre or spread else None
            yield Relation(said(_told(centre, spread, place, number)), made, amplified=more, rounded=beside)


def _number(
    place: _Place, seen: Sequence[Seen], columns: Sequence[Array], bounds: Sequence[tuple[Array, Array]]
) -> float | None:
    allowed, told = Interval(), False
    for one, column, (low, high) in zip(seen, columns, bounds, strict=True):
        eps = one.facts.eps
        base, slope = place.base(column, eps), place.slope(column, eps)
        least, most = place.transformed(low), place.transformed(high)
        if place.limit:
            below, above = _limited(place, column, eps, base, (least, most))
            allowed = allowed.within((below / slope)[~np.isnan(below)], (above / slope)[~np.isnan(above)])
            told = told or bool((np.isfinite(below) & np.isfinite(above) & (slope > 0)).any())
            if allowed.empty:
                return None
            continue
        least, most = least - base, most - base
        lost = np.isnan(least) | np.isnan(most) | ~np.isfinite(slope)
        still = (slope == 0) & ~lost
        if (least[still] > 0).any() or (most[still] < 0).any():
            return None
        still |= lost
        ends = (least / slope)[~still], (most / slope)[~still]
        allowed, told = allowed.within(np.minimum(*ends), np.maximum(*ends)), told or bool((~still).any())
        if allowed.empty:
            return None
    if not told:
        return None
    if np.isfinite(place.right) and allowed.low <= place.right <= allowed.high:
        return place.right
    known = allowed.known(place.right if np.isfinite(place.right) else 0.0)
    if not np.isfinite(allowed.low) or not np.isfinite(allowed.high):
        return None
    if not known and not allowed.low <= 0 <= allowed.high:
        return None
    number = simplest(allowed)
    return number if not number or _LEAST <= abs(number) <= _MOST else None


def _limited(place: _Place, column: Array, eps: float, base: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
    """Bounds of k slope, if the larger or smaller of it and base has to lie within the bounds."""
    added = 0.0 if place.added is None else place.added(column, eps)
    least, most = bounds[0] - added, bounds[1] - added
    if place.limit > 0:
        return np.where(least > base, least, -np.inf), most
    return least, np.where(most < base, most, np.inf)


def _root(facts: Facts, column: Column, place: _Place, number: float) -> Array:
    """The root that each group was divided by."""
    spread = column(facts)
    base, moved = place.base(spread, facts.eps), number * place.slope(spread, facts.eps)
    if place.limit:
        limited = np.maximum(base, moved) if place.limit > 0 else np.minimum(base, moved)
        return np.sqrt(limited + (0.0 if place.added is None else place.added(spread, facts.eps)))
    return np.sqrt(place.back(base + moved))


def _amplified(column: Column, place: _Place, number: float) -> Callable[[Seen], Array]:
    return lambda one: one.facts.back(1 / (one.facts.r * _root(one.facts, column, place, number)))


def _rounded(column: Column, place: _Place, number: float) -> Callable[[Seen], Array]:
    """
    The roundings of another centre or spread. A centre rounds a sum of all values, and its difference from each. The
    roundings of a spread count where the spread itself is no larger.
    """

    def made(one: Seen) -> Array:
        facts, root = one.facts, _root(one.facts, column, place, number)
        largest = np.abs(facts.data).max() * (facts.n + 8) * one.values.unit
        beside = np.abs(facts.rows(facts.xhat)) / facts.r * np.square(largest / root) / root
        return np.abs(facts.gamma) * facts.back(largest / root + beside)

    return made


def _made(middle: Column, column: Column, place: _Place, number: float) -> Callable[[Seen], Array]:
    def made(one: Seen) -> Array:
        facts = one.facts
        xhat = (facts.data - middle(facts)) / _root(facts, column, place, number)
        return facts.gamma * facts.back(xhat) + facts.beta

    return made


def _told(centre: str, spread: str, place: _Place, number: float) -> str:
    """In words, what replaces what."""
    changed = []
    if centre:
        changed.append(f"{centre} in place of the mean")
    if spread:
        changed.append(f"{spread} in place of var")
    if number != place.right or not np.isfinite(place.right):
        changed.append(f"{place.words(written(number))} in place of sqrt(var + eps)")
    return f"what the formula gives with {' and '.join(changed)}"
