"""Relations: how a wrong result relates to the right one, and whether that holds on every case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import attrs
import numpy as np

from ....reference.formats import FORMATS, Format
from ..answers import CLEARLY_WRONG
from .formula_steps import Array, broadcast
from .numbers import Interval, simplest, written
from .observing import ObservedResult

#: Makes an array of a result's shape; None if the relation does not apply to the case.
Compute = Callable[[ObservedResult], "Array | None"]

#: A few more roundings: of what a relation's own number multiplies, of a wrong step, and of y from an inner value.
EXTRA_ROUNDINGS = 8.0


@attrs.frozen(eq=False)
class LinearRelation:
    """got = base + k times slope, with one number k for all cases; got = base if there is no slope."""

    #: The words after "y is"; a function of the number k if they tell it.
    words: str | Callable[[float], str]
    base: Compute
    slope: Compute | None = None
    #: The k of a right result.
    right: float = 0.0
    #: Factor by which it enlarges roundings, compared with the right formula, because it divides by less.
    amplified: Compute | None = None
    #: Roundings that the right formula does not have.
    rounded: Compute | None = None
    #: Whether a case tells it from other relations; every case does if there is nothing here.
    tells: Callable[[ObservedResult], bool] | None = None

    def in_words(self, number: float) -> str:
        """The words after "y is", with this number."""
        return self.words if isinstance(self.words, str) else self.words(number)

    def is_of_formula(self, number: float) -> bool:
        """Whether it is a formula for all values of a case, so that a right value may contradict it as well."""
        return self.in_words(number).startswith("what the formula gives")

    def is_limit(self, number: float) -> bool:
        """Whether it limits something: it then holds everywhere, and is the right formula where nothing is limited."""
        return bool(re.search(r"\b(max|min)\(", self.in_words(number)))

    def fitted(self, seen: Sequence[ObservedResult], where: Sequence[Array]) -> float | None:
        """The plainest k that everything seen allows, in the given places; None if there is none."""
        allowed, bounded = Interval(), False
        for one, places in zip(seen, where, strict=True):
            arrays = self._arrays(one)
            if arrays is None:
                return None
            base, slope = arrays
            here = one.judged & places
            apart, slack = (one.got - base)[here], self._slack(one, base)[here]
            if slope is None:
                if not _equal_within(one.got[here], base[here], slack):
                    return None
                continue
            each = slope[here]
            known = np.isfinite(each)
            apart, slack, each = apart[known], slack[known], each[known]
            still = np.abs(each) <= 1e-300
            if not (np.abs(apart[still]) <= slack[still]).all() or not np.isfinite(apart).all():
                return None
            apart, slack, each = apart[~still], slack[~still], each[~still]
            ends = (apart - slack) / each, (apart + slack) / each
            allowed = allowed.within(np.minimum(*ends), np.maximum(*ends))
            bounded = bounded or bool(each.size)
            if allowed.empty:
                return None
        if self.slope is None:
            return 0.0
        if not bounded or not allowed.known(self.right):
            return None
        return simplest(allowed)

    def holds(self, number: float, seen: Iterable[ObservedResult], where: Iterable[Array]) -> bool:
        """Whether the relation holds with this number, in the given places."""
        for one, places in zip(seen, where, strict=True):
            arrays = self._arrays(one)
            if arrays is None:
                return False
            here = one.judged & places
            want = _on_line(*arrays, number)
            if not _equal_within(one.got[here], want[here], self._slack(one, arrays[0])[here]):
                return False
        return True

    def value(self, number: float, one: ObservedResult) -> Array | None:
        """The value with this number; None if the relation does not apply to the case."""
        arrays = self._arrays(one)
        return None if arrays is None else _on_line(*arrays, number)

    def slack(self, one: ObservedResult) -> Array:
        """How far the roundings of the relation's steps may carry the result."""
        arrays = self._arrays(one)
        return one.slack if arrays is None else self._slack(one, arrays[0])

    def is_evident(self, seen: Sequence[ObservedResult], where: Sequence[Array]) -> bool:
        """Whether most results that are far off are far off by what the relation allows, too. Else it says nothing."""
        telling = [
            (one, places) for one, places in zip(seen, where, strict=True) if self.tells is None or self.tells(one)
        ]
        far = [(one, places) for one, places in telling if one.clearly_wrong and places.any()]
        evident = 0
        for one, places in far:
            arrays = self._arrays(one)
            if arrays is not None:
                off, slack = np.abs(one.got - one.expected), self._slack(one, arrays[0])
                # Of an infinite slack only a relation that is not finite either says anything.
                tells = np.where(np.isfinite(slack), ~(off < CLEARLY_WRONG * slack), False)
                tells |= ~np.isfinite(one.got) & ~np.isfinite(arrays[0])
                evident += bool((one.wrong & places & tells).any())
        return bool(far) and 2 * evident > len(far)

    def _arrays(self, one: ObservedResult) -> tuple[Array, Array | None] | None:
        base = self.base(one)
        slope = None if self.slope is None else self.slope(one)
        if base is None or (self.slope is not None and slope is None):
            return None
        shape = one.got.shape
        return broadcast(base, shape), None if slope is None else broadcast(slope, shape)

    def _slack(self, one: ObservedResult, base: Array) -> Array:
        # An infinite base would make the slack infinite, and every number equal to it.
        slack = one.slack + EXTRA_ROUNDINGS * one.values.unit * np.abs(np.where(np.isfinite(base), base, 0.0))
        more = None if self.amplified is None else self.amplified(one)
        if more is not None:
            slack = slack * np.maximum(np.nan_to_num(more, nan=1.0, posinf=1.0), 1.0)
        beside = None if self.rounded is None else self.rounded(one)
        return slack if beside is None else slack + np.nan_to_num(beside, nan=0.0, posinf=0.0)


def _on_line(base: Array, slope: Array | None, number: float) -> Array:
    return base if slope is None else base + number * slope


def _equal_within(got: Array, want: Array, slack: Array) -> bool:
    """Whether two arrays differ by no more than the slack, and are not finite in the same places."""
    finite = np.isfinite(got), np.isfinite(want)
    return bool(((np.abs(got - want) <= slack) | (~finite[0] & ~finite[1])).all())


def right(one: ObservedResult) -> Array:
    """The right value."""
    return one.expected


def nothing(one: ObservedResult) -> Array:
    """Zeros."""
    return np.zeros(one.got.shape)


def ones(one: ObservedResult) -> Array:
    """Ones."""
    return np.ones(one.got.shape)


def _times(number: float) -> str:
    return "minus the right value" if number == -1 else f"{written(number)} times the right value"


def _shifted(number: float) -> str:
    return f"the right value {'plus' if number > 0 else 'minus'} {written(abs(number))}"


def _signed(number: float) -> str:
    return f"{written(number)} with the sign of the right value"


# Relations of any operator's result --------------------------------------------------------------------------------


def _own(name: str, one: ObservedResult) -> Array | None:
    """An input, if the result has its shape."""
    value = one.steps.g if name == "g" else one.steps.given(name)
    return value if value is not None and value.shape == one.got.shape else None


def _rearranged(words: str, taken: Callable[[ObservedResult, Array], Array | None]) -> LinearRelation:
    """The right values in other places, each with the slack found where it comes from."""
    return LinearRelation(words, lambda one: taken(one, one.expected), rounded=lambda one: taken(one, one.slack))


def _of_another_group(words: str, by: Callable[[int], Array]) -> LinearRelation:
    """The result of another group."""

    def taken(one: ObservedResult, values: Array) -> Array | None:
        return one.steps.back(one.steps.rows(values)[by(one.steps.count)]) if one.has_x_shape else None

    return _rearranged(words, taken)


def _channels(one: ObservedResult) -> int | None:
    return one.case.settings["channel_axis"] % one.case.x.ndim if one.case.record.has_channels else None


def _moved_along(what: str, axis: Callable[[ObservedResult], int | None]) -> Iterable[LinearRelation]:
    """The result of another sample or channel."""

    def taken(by: Callable[[int], Array], one: ObservedResult, values: Array) -> Array | None:
        along = axis(one)
        if not one.has_x_shape or along is None:
            return None
        return np.take(values, by(values.shape[along]), axis=along)

    for words, by in (
        (f"that of the first {what}", lambda n: np.zeros(n, int)),
        (f"that of the last {what}", lambda n: np.full(n, n - 1)),
        *((f"that of the {what} {words} it", by) for words, by in _MOVED),
    ):
        yield _rearranged(words, partial(taken, by))


def _rounded_to() -> Iterable[LinearRelation]:
    """The right value rounded to a coarser grid: the received value lies on the grid, next to the right value."""
    for exponent in range(17):
        for base in (2, 10):
            if base == 2 or 0 < exponent < 7:
                step = float(base) ** -exponent
                words = f"the right value rounded to multiples of {written(step)}"
                yield LinearRelation(words, partial(_on_grid, partial(_multiple, step)))
    for name in ("bfloat16", "float16", "float32"):
        yield LinearRelation(f"the right value rounded to {name}", partial(_on_grid, partial(_narrowed, FORMATS[name])))


def _multiple(step: float, got: Array) -> tuple[Array, float]:
    """The nearest multiples, and how far these are apart."""
    return np.rint(got / step) * step, step


def _narrowed(format: Format, got: Array) -> tuple[Array, Array]:
    """The nearest numbers of a dtype, and how far these are apart at most."""
    step = np.maximum(4 * format.unit_roundoff * np.abs(got), format.smallest_subnormal)
    return got.astype(format.dtype).astype(np.float64), step


def _on_grid(rounded: Callable[[Array], tuple[Array, Array | float]], one: ObservedResult) -> Array | None:
    on_grid, step = rounded(one.got)
    exactly = np.abs(on_grid - one.got) <= 2.0**-40 * np.abs(one.got)
    near = np.abs(one.got - one.expected) <= 0.5001 * step + one.slack
    beyond = np.isinf(one.got) & (rounded(one.expected)[0] == one.got)  # more than the largest number of the grid
    return one.got if bool((exactly & near | beyond)[one.judged].all()) else None


def _values_moved(by: Callable[[int], Array], one: ObservedResult) -> Array:
    if one.has_x_shape:
        return one.steps.back(one.steps.rows(one.expected)[:, by(one.steps.n)])
    flat = one.expected.reshape(-1)
    return flat[by(flat.size)].reshape(one.expected.shape)


_MOVED: tuple[tuple[str, Callable[[int], Array]], ...] = (
    ("before", lambda n: (np.arange(n) - 1) % n),
    ("after", lambda n: (np.arange(n) + 1) % n),
)

#: Numbers of a case by which a result may be multiplied, with their words.
_COUNTS: tuple[tuple[str, Callable[[ObservedResult], float]], ...] = (
    ("the number of values in a group", lambda one: one.steps.n),
    ("the number of groups", lambda one: one.steps.count),
    ("the number of samples", lambda one: one.case.x.shape[0]),
    ("eps", lambda one: one.steps.eps),
    ("momentum", lambda one: float(one.case.settings.get("momentum", 0.0))),
)


def terms_in_sum(one: ObservedResult) -> float:
    """The number of terms in the sum that one element of a parameter's gradient is."""
    return one.case.x.size / max(one.got.size, 1)


def _scaled(count: Callable[[ObservedResult], float], power: float, one: ObservedResult) -> Array | None:
    number = count(one)
    return one.expected * number**power if number > 0 else None


def _by(words: str, number: float) -> str:
    return f"{'the right value' if number == 1 else _times(number)} {words}"


def plain_relations(name: str) -> Iterator[LinearRelation]:
    """The relations that any result may have to the right one, the plainest first."""
    # These come first: a formula that is not finite in a place agrees there with any other that is not.
    yield LinearRelation("NaN", lambda one: np.where(np.isinf(one.got), 0.0, np.nan))
    yield LinearRelation("infinite", lambda one: np.where(np.isnan(one.got), 0.0, np.inf))
    yield LinearRelation("zero", nothing)
    for other in ("x", "g", "gamma", "beta", "running_mean", "running_var"):
        if other != name:
            yield LinearRelation(f"{other} itself", partial(_own, other))
    yield LinearRelation(_times, nothing, right, 1.0)
    yield LinearRelation(_shifted, right, ones)
    yield LinearRelation("the right value without its sign", lambda one: np.abs(one.expected))
    yield LinearRelation(lambda number: f"{written(number)}, whatever is given", nothing, ones, np.inf)
    yield LinearRelation(_signed, nothing, lambda one: np.sign(one.expected), np.inf)
    counts = [*_COUNTS, *((("the number of terms in its sum", terms_in_sum),) if name not in ("y", "dx") else ())]
    for words, count in counts:
        for power, scaled in (
            (1.0, f"times {words}"),
            (-1.0, f"divided by {words}"),
            (-0.5, f"divided by the root of {words}"),
        ):
            yield LinearRelation(partial(_by, scaled), nothing, partial(_scaled, count, power), np.inf)
    yield _of_another_group("that of the first group", lambda n: np.zeros(n, int))
    yield _of_another_group("that of the last group", lambda n: np.full(n, n - 1))
    yield from _moved_along("sample", lambda one: 0 if one.case.record.has_channels else None)
    yield from _moved_along("channel", _channels)
    for words, by in _MOVED:
        yield _of_another_group(f"that of the group {words} it", by)
        yield LinearRelation(f"that of the place {words} it", partial(_values_moved, by))
    yield _of_another_group("that of the groups in reverse order", lambda n: np.arange(n)[::-1])
    yield from _rounded_to()
    yield LinearRelation("the right values in reverse order", partial(_values_moved, lambda n: np.arange(n)[::-1]))
