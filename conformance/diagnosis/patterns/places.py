"""Places: where a result is wrong, and where it is right, among cases, groups and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from ....spec.operators import OPERATORS
from ...cases.case import Case
from .formula_steps import FormulaSteps
from .numbers import written
from .observing import ObservedResult

Array = np.ndarray

#: A place needs at least this many wrong elements inside, and this many elements outside.
_FEW = 3
#: The outside must have at least this share of the elements inside: a place with nearly everything says nothing.
_SOME = 0.01
#: A place of whole cases needs instead at least this many cases with something wrong inside, and this many outside:
#: cases that are right may be small.
_FEW_CASES = 3
#: Places in which a relation is searched.
_TRIED = 3
#: A place that is wrong only in part is named if at least this many cases are wrong, and this share of the place.
_TIMES, _PART = 5, 0.2
_SIZES = ("where the number of groups", "where the number of values", "in the first", "after the")
#: A place without a relation needs this share wrong inside, and outside this share of the elements inside.
_NEARLY_ALL, _MUCH = 0.97, 0.1


@attrs.frozen(eq=False)
class Place:
    """A part of the elements of a result, in words that follow "y is wrong"."""

    words: str
    #: Which elements of a result are in it, as an array that broadcasts; None if the place does not apply to the case.
    among: Callable[[ObservedResult], Array | bool | None]

    @property
    def counts(self) -> bool:
        """Whether it is about the number of something."""
        return self.words.startswith("where the number of")

    @property
    def is_of_absent_parameters(self) -> bool:
        """Whether it is where gamma or beta is None."""
        return bool(re.search(r"\b(gamma|beta) is None|neither gamma nor beta", self.words))

    def mask(self, one: ObservedResult) -> Array | None:
        """Which elements of a result are in it."""
        found = self._found(one)
        return None if found is None else found > 0

    def parts(self, one: ObservedResult) -> tuple[Array, Array] | None:
        """The judged elements that are outside, and those inside; None if the place does not apply to the case."""
        found = self._found(one)
        if found is None:
            return None
        inside = found > 0
        known = one.judged & ~np.isnan(found)  # where roundings decide, an element is neither in nor out
        return known & ~inside, known & inside

    def _found(self, one: ObservedResult) -> Array | None:
        with np.errstate(all="ignore"):
            found = self.among(one)
        if found is None:
            return None
        try:
            return np.broadcast_to(np.asarray(found, np.float64), one.got.shape)
        except ValueError:
            return None


EVERYWHERE = Place("", lambda one: True)


@attrs.frozen
class Share:
    """How many elements are wrong and how many are judged, outside a place and inside it."""

    outside_wrong: int
    outside: int
    inside_wrong: int
    inside: int
    #: How many cases lie outside, how many inside, and how many of these are wrong; 0 each if a case lies in both.
    cases_outside: int = 0
    cases_inside: int = 0
    cases_wrong: int = 0

    @property
    def explains(self) -> bool:
        """Whether nothing outside is wrong, and enough there was looked at."""
        enough = self.outside >= max(_FEW, _SOME * self.inside) and self.inside_wrong >= _FEW
        enough = enough or min(self.cases_outside, self.cases_wrong) >= _FEW_CASES
        return enough and not self.outside_wrong

    @property
    def contrasts(self) -> bool:
        """Whether so much was looked at outside that it is no accident that nothing is wrong there."""
        enough = self.cases_outside >= max(_FEW_CASES, _MUCH * self.cases_inside)
        return self.outside >= _MUCH * self.inside or enough

    @property
    def exact(self) -> bool:
        """Whether everything inside is wrong, and nothing outside."""
        return self.outside > 0 and self.inside > 0 and not self.outside_wrong and self.inside_wrong == self.inside

    @property
    def rate(self) -> float:
        """The share of the place that is wrong."""
        return self.inside_wrong / max(self.inside, 1)


def share(place: Place, seen: Sequence[ObservedResult], *, explaining: bool = False) -> Share | None:
    """The share of a place over everything seen; with ``explaining``, None as soon as something outside is wrong."""
    counts = np.zeros(4, int)
    cases: list[tuple[bool, bool, bool]] = []
    for one in seen:
        parts = place.parts(one)
        if parts is None:
            return None
        outside, inside = parts
        cases.append((bool(outside.any()), bool(inside.any()), bool((one.wrong & inside).any())))
        for offset, here in zip((0, 2), parts, strict=True):
            counts[offset] += np.count_nonzero(one.wrong & here)
            counts[offset + 1] += np.count_nonzero(here)
        if explaining and counts[0]:
            return None
    whole = not any(outside and inside for outside, inside, _ in cases)
    return Share(*(int(count) for count in counts), *(map(sum, zip(*cases, strict=True)) if whole else ()))


# Places of whole cases --------------------------------------------------------------------------------------------


def _case(words: str, test: Callable[[FormulaSteps], bool | None]) -> Place:
    return Place(words, lambda one: test(one.steps))


def _both_ways(where: str, otherwise: str, test: Callable[[FormulaSteps], bool | None]) -> Iterator[Place]:
    yield _case(where, test)

    def opposite(steps: FormulaSteps) -> bool | None:
        found = test(steps)
        return None if found is None else not found

    yield _case(otherwise, opposite)


def _power_of_two(n: int) -> bool:
    return n & (n - 1) == 0


def samples_of(case: Case) -> int:
    """The number of samples: they lie along the first axis that is not the channels'."""
    shape = list(case.x.shape)
    del shape[case.settings["channel_axis"] % len(shape)]
    return shape[0] if shape else 1


def _of_number(words: str, number: Callable[[FormulaSteps], int]) -> Iterator[Place]:
    """Places by what divides a number."""
    tests: list[tuple[str, Callable[[int], bool]]] = [("a power of two", _power_of_two)]
    for block in (3, 4, 5, 7, 8, 10, 16, 32, 64):
        tests.append((f"a multiple of {block}", lambda count, block=block: count % block == 0))
    yield from _both_ways(f"where {words} is odd", f"where {words} is even", lambda f: number(f) % 2 == 1)
    for told, test in tests:
        yield from _both_ways(
            f"where {words} is {told}", f"where {words} is not {told}", lambda f, test=test: test(number(f))
        )


def _of_cases(operator: str) -> Iterator[Place]:
    record = OPERATORS[operator]
    for name in ("gamma", "beta"):
        if name in record.arguments:
            given = f"where {name} is given", f"where {name} is None"
            yield from _both_ways(*given, lambda steps, name=name: steps.given(name) is not None)
    if "gamma" in record.arguments and "beta" in record.arguments:
        yield from _both_ways(
            "where both gamma and beta are given",
            "unless both gamma and beta are given",
            lambda steps: steps.given("gamma") is not None and steps.given("beta") is not None,
        )
        yield from _both_ways(
            "where gamma is given and beta is None",
            "unless gamma is given and beta is None",
            lambda steps: steps.given("gamma") is not None and steps.given("beta") is None,
        )
        yield from _both_ways(
            "where beta is given and gamma is None",
            "unless beta is given and gamma is None",
            lambda steps: steps.given("gamma") is None and steps.given("beta") is not None,
        )
        yield from _both_ways(
            "where neither gamma nor beta is given",
            "where gamma or beta is given",
            lambda steps: steps.given("gamma") is None and steps.given("beta") is None,
        )
    if record.has_modes:
        yield from _both_ways("in training", "in inference", lambda steps: steps.training)
        for training, mode in ((True, "in training"), (False, "in inference")):
            for name in ("gamma", "beta"):
                for there, told in ((True, "is given"), (False, "is None")):
                    yield _case(
                        f"{mode} where {name} {told}",
                        lambda f, wanted=(training, there), name=name: (
                            (f.training, f.given(name) is not None) == wanted
                        ),
                    )
    for role in record.optional:
        given = f"where {role} is given", f"where {role} is None"
        yield from _both_ways(*given, lambda steps, role=role: steps.case.parts.get(role) is not None)
    if record.has_branches:
        yield from _both_ways(
            "where there is one branch", "where there are several branches", lambda f: len(f.branches) == 1
        )
    if record.normalises:
        yield from _both_ways("where eps is 0", "where eps is not 0", lambda steps: steps.eps == 0)
    yield from _both_ways("where there is one group", "where there are several groups", lambda f: f.count == 1)
    yield from _both_ways(
        "where the number of groups is odd", "where the number of groups is even", lambda f: f.count % 2 == 1
    )
    yield from _both_ways("where a group has one value", "where a group has several values", lambda f: f.n == 1)
    yield from _of_number("the number of values in a group", lambda steps: steps.n)
    yield from _both_ways(
        "where there are as many groups as values in each", "where there are more or fewer groups than values in each",
        lambda steps: steps.count == steps.n,
    )  # fmt: skip
    for rank in (1, 2, 3, 4, 5):
        axes = "one axis" if rank == 1 else f"{rank} axes"
        yield from _both_ways(
            f"where x has {axes}", f"where x does not have {axes}", lambda f, rank=rank: f.x.ndim == rank
        )
    if "axes" in record.settings:
        yield from _both_ways(
            "where several axes are normalised",
            "where one axis is normalised",
            lambda f: len(f.case.settings["axes"]) > 1,
        )
    if record.has_channels:
        last = "where the channels are the last axis", "where the channels are not the last axis"
        yield from _both_ways(*last, lambda f: f.case.settings["channel_axis"] % f.x.ndim == f.x.ndim - 1)
        sign = "where channel_axis is negative", "where channel_axis is not negative"
        yield from _both_ways(*sign, lambda f: f.case.settings["channel_axis"] < 0)
        samples = "where there is one sample", "where there are several samples"
        yield from _both_ways(*samples, lambda f: samples_of(f.case) == 1)
        positions = "where a channel of a sample has one value", "where a channel of a sample has several values"
        yield from _both_ways(*positions, lambda f: f.x.size == samples_of(f.case) * f.case.layout.parameters)
        yield from _of_number("the number of channels", lambda f: f.case.layout.parameters)
    if "groups" in record.settings:
        yield from _both_ways(
            "where groups is 1", "where groups is more than 1", lambda f: f.case.settings["groups"] == 1
        )
        each = "where each channel is a group", "where a group has several channels"
        yield from _both_ways(*each, lambda f: f.case.layout.width == 1)
        yield from _of_number("the number of channels in a group", lambda f: f.case.layout.width)


# Places of groups and values --------------------------------------------------------------------------------------


def _rows(words: str, test: Callable[[FormulaSteps], Any]) -> Place:
    """A place of whole groups; the test gives one value for each group."""

    def among(one: ObservedResult) -> Array | None:
        return one.steps.back(np.reshape(test(one.steps), (-1, 1))) if one.has_x_shape else None

    return Place(words, among)


#: The axes along which groups lie, if there are channels.
_AXES: tuple[tuple[str, Callable[[FormulaSteps], int]], ...] = (
    ("sample", lambda steps: 0),
    ("channel", lambda steps: steps.case.settings["channel_axis"] % steps.x.ndim),
)


def _numbers(places: Array, size: int) -> Array:
    return places


def _along(operator: str) -> Iterator[Place]:
    """Places of samples and of channels, by number."""
    record = OPERATORS[operator]
    if not record.has_channels:
        return
    for what, axis in _AXES:
        for words, test in (
            (f"in the first {what}", lambda i, n: i == 0),
            (f"in the last {what}", lambda i, n: i == n - 1),
            (f"in every {what} but the first", lambda i, n: i > 0),
            (f"in every {what} but the last", lambda i, n: i < n - 1),
            (f"in every second {what}, the second first", lambda i, n: i % 2 == 1),
            (f"in every second {what}, the first first", lambda i, n: i % 2 == 0),
        ):
            yield Place(words, lambda one, axis=axis, test=test: _of_axis(one, axis(one.steps), test))


def _of_axis(one: ObservedResult, axis: int, test: Callable[[Array, int], Array]) -> Array | None:
    if not one.has_x_shape:
        return None
    size = one.got.shape[axis]
    return test(np.arange(size), size).reshape([size if place == axis else 1 for place in range(one.got.ndim)])


def _index(words: str, test: Callable[[Array, int], Array]) -> Iterator[Place]:
    """A place of values by number within their group, and of parameters by number."""

    def among(one: ObservedResult) -> Array | None:
        if one.has_x_shape:
            return one.steps.back(test(np.arange(one.steps.n), one.steps.n)[None, :])
        return test(np.arange(one.got.size), one.got.size).reshape(one.got.shape)

    yield Place(words, among)


def _sign(steps: FormulaSteps, sign: int) -> Array:
    """1 where the mean of a group has a sign, NaN where roundings decide the sign."""
    mean = steps.data.mean(axis=1)
    unsure = np.abs(mean) <= 1e-5 * np.abs(steps.data).max(axis=1)
    return np.where(unsure, np.nan, sign * mean > 0)


def _of_groups() -> Iterator[Place]:
    yield _rows("in the first group", lambda f: np.arange(f.count) == 0)
    yield _rows("in the last group", lambda f: np.arange(f.count) == f.count - 1)
    yield _rows("in every group but the first", lambda f: np.arange(f.count) > 0)
    yield _rows("in every group but the last", lambda f: np.arange(f.count) < f.count - 1)
    yield _rows("in every second group, the second first", lambda f: np.arange(f.count) % 2 == 1)
    yield _rows("in every second group, the first first", lambda f: np.arange(f.count) % 2 == 0)
    yield _rows(
        "in the last group, where their number is odd",
        lambda f: np.arange(f.count) == (f.count - 1 if f.count % 2 else -1),
    )
    yield _rows("in groups whose values are all equal", lambda f: np.ptp(f.data, axis=1) == 0)
    yield _rows("in groups whose mean is negative", lambda f: _sign(f, -1))
    yield _rows("in groups whose mean is positive", lambda f: _sign(f, 1))
    yield _rows("in groups that hold a zero", lambda f: (f.data == 0).any(axis=1))
    yield _rows("in groups without a negative value", lambda f: (f.data >= 0).all(axis=1))


def _of_values(operator: str) -> Iterator[Place]:
    yield from _index("in the first value of each group", lambda i, n: i == 0)
    yield from _index("in the last value of each group", lambda i, n: i == n - 1)
    yield from _index("in every value of a group but the first", lambda i, n: i > 0)
    yield from _index("in every value of a group but the last", lambda i, n: i < n - 1)
    yield from _index("in every second value of a group, the second first", lambda i, n: i % 2 == 1)
    yield from _index("in every second value of a group, the first first", lambda i, n: i % 2 == 0)
    yield from _index("in the second half of each group", lambda i, n: i >= n // 2)
    for block in (2, 4, 8, 16, 32, 64, 128):
        yield from _index(
            f"after the last whole block of {block} values of a group", lambda i, n, b=block: i >= n - n % b
        )

    def given(name: str, words: str, test: Callable[[Array], Array]) -> Place:
        def among(one: ObservedResult) -> Array | None:
            value = getattr(one.steps, name)
            return test(value) if one.has_x_shape else None

        return Place(words, among)

    names = [("x", "x")]
    record = OPERATORS[operator]
    names += [(name, name) for name in ("gamma", "beta") if name in record.arguments]
    names += [("g", "the cotangent")]
    for name, words in names:
        yield given(name, f"where {words} is negative", lambda value: value < 0)
        yield given(name, f"where {words} is positive", lambda value: value > 0)
        yield given(name, f"where {words} is 0", lambda value: value == 0)
        yield given(name, f"where {words} is not 0", lambda value: value != 0)
    yield Place("where the right value is negative", lambda one: one.expected < 0)
    yield Place("where the right value is positive", lambda one: one.expected > 0)
    if record.normalises:
        above = "where x is above the mean of its group", "where x is below the mean of its group"
        yield given("xhat", above[0], lambda value: value > 0)
        yield given("xhat", above[1], lambda value: value < 0)
    if record.has_gates:
        yield given("gate", "where the transform gate is above 1/2", lambda value: value > 0.5)
        yield given("gate", "where the transform gate is below 1/2", lambda value: value < 0.5)


# Places by the size of something ----------------------------------------------------------------------------------


def _column(test: Callable[[FormulaSteps], Array]) -> Callable[[ObservedResult], Array | None]:
    def made(one: ObservedResult) -> Array | None:
        return one.steps.back(np.reshape(test(one.steps), (-1, 1))) if one.has_x_shape else None

    return made


def _shaped(make: Callable[[ObservedResult], Array]) -> Callable[[ObservedResult], Array | None]:
    return lambda one: make(one) if one.has_x_shape else None


#: A quantity in words, its value, and whether it is a whole number.
_Measure = tuple[str, "Callable[[ObservedResult], Array | float | None]", bool]


def _measures(operator: str) -> Iterator[_Measure]:
    """The quantities by which a place may be bounded."""
    record = OPERATORS[operator]
    yield "the number of values in a group", lambda one: one.steps.n, True
    yield "the number of groups", lambda one: one.steps.count, True
    yield "the number of values of x", lambda one: one.case.x.size, True
    yield "the number of axes of x", lambda one: one.case.x.ndim, True
    if record.groups.name == "SAMPLE_CHANNELS" or record.has_modes:
        yield "the number of channels", lambda one: one.case.layout.parameters, True
    if "groups" in record.settings:
        yield "the number of groups of a sample", lambda one: one.case.settings["groups"], True
    if record.has_branches:
        yield "the number of branches", lambda one: len(one.steps.branches), True
    if record.normalises:
        yield "eps", lambda one: one.steps.eps, False
    if record.has_modes:
        yield "momentum", lambda one: float(one.case.settings["momentum"]), False
    yield "the magnitude of the right value", lambda one: np.abs(one.expected), False
    yield "the right value", lambda one: one.expected, False
    yield "|x|", _shaped(lambda one: np.abs(one.steps.x)), False
    yield "x", _shaped(lambda one: one.steps.x), False
    yield "the largest |x| of the group", _column(lambda f: np.abs(f.data).max(axis=1)), False
    if "gamma" in record.arguments:
        yield "|gamma|", _shaped(lambda one: np.abs(one.steps.gamma)), False
        yield "gamma", _shaped(lambda one: one.steps.gamma), False
    if "beta" in record.arguments:
        yield "|beta|", _shaped(lambda one: np.abs(one.steps.beta)), False
    if record.normalises:
        yield "xhat", _shaped(lambda one: one.steps.xhat), False
        yield "|xhat|", _shaped(lambda one: np.abs(one.steps.xhat)), False
        yield "the variance of the group", _column(lambda f: f.variance), False
        yield (
            "the variance divided by eps",
            _column(lambda f: f.variance / f.eps if f.eps else np.full((f.count, 1), np.inf)),
            False,
        )
        yield "|mean| divided by the deviation", _column(lambda f: np.abs(f.mean) / np.sqrt(f.variance)), False
    yield "|g|", _shaped(lambda one: np.abs(one.steps.g)), False
    if record.has_gates:
        yield "the transform gate", _shaped(lambda one: _neither_open_nor_shut(one.steps.gate)), False
        yield "the transform gate's logit", _shaped(lambda one: one.steps.part("gate", one.steps.x)), False
    yield "the place in the group", _shaped(lambda one: one.steps.back(np.arange(one.steps.n)[None, :])), True
    for what, axis in _AXES if record.has_channels else ():
        yield f"the place among the {what}s", lambda one, axis=axis: _of_axis(one, axis(one.steps), _numbers), True
    yield "the place among the groups", _column(lambda f: np.arange(f.count)), True


def _neither_open_nor_shut(gate: Array) -> Array:
    """The gate, but NaN where it is 0 or 1: its logit tells more there."""
    return np.where((gate > 0) & (gate < 1), gate, np.nan)


#: What is smaller than this, compared with the smallest right value, is 0 apart from rounding.
_NOTHING = 2.0**-40


def _by_measure(seen: Sequence[ObservedResult], measures: Iterable[_Measure]) -> Iterator[Place]:
    """Places above or below a limit that separates wrong values from right ones."""
    for words, measure, whole in measures:
        wrong, right = _parted(measure, seen)
        if wrong is None or right is None or not wrong.size or not right.size:
            continue
        for sign in (1.0, -1.0):
            edge = float((sign * wrong).min())
            below = sign * right[sign * right < edge]
            # With an eps of 0 some quantities are infinite: no number separates these from finite ones.
            if not below.size or not np.isfinite((edge, below.max())).all():
                continue
            limit, near = sign * edge, sign * float(below.max())
            if sign < 0 and wrong.min() >= 0 and limit <= _NOTHING * near:
                clause, value = f"where {words} is 0{' or next to it' if limit else ''}", limit
            else:
                clause, value = _limit(words, limit, near, sign, whole=whole)
            yield Place(clause, _beyond(measure, value, sign))


def _parted(
    measure: Callable[[ObservedResult], Array | float | None], seen: Sequence[ObservedResult]
) -> tuple[Array | None, Array | None]:
    wrong, right = [], []
    with np.errstate(all="ignore"):
        for one in seen:
            found = measure(one)
            if found is None:
                return None, None
            laid = np.broadcast_to(np.asarray(found, np.float64), one.got.shape)
            wrong.append(laid[one.wrong])
            right.append(laid[one.judged & ~one.wrong])
    both = np.concatenate(wrong), np.concatenate(right)
    return tuple(each[~np.isnan(each)] for each in both)  # type: ignore[return-value]


#: Quantities that count from 0 have words of their own.
_PLACED = {
    "the place in the group": "values of each group",
    "the place among the samples": "samples",
    "the place among the channels": "channels",
    "the place among the groups": "groups",
}


#: If a wrong and a right value are apart by more than this factor, the limit is said to be between them.
_FAR_APART = 4.0
#: If by more than this factor, both are said.
_VERY_FAR_APART = 16.0


def _limit(words: str, limit: float, near: float, sign: float, *, whole: bool) -> tuple[str, float]:
    """Words for the values at and beyond a limit, and a number between both sides."""
    if words in _PLACED:
        first = int(limit) if sign > 0 else int(limit) + 1
        return f"{'after' if sign > 0 else 'in'} the first {first} {_PLACED[words]}", limit
    if whole:
        return f"where {words} is {written(limit)} or {'more' if sign > 0 else 'less'}", limit
    smaller, larger = sorted((abs(limit), abs(near)))
    apart = limit * near > 0 and larger > _FAR_APART * smaller
    if limit * near > 0 and larger > _VERY_FAR_APART * smaller:
        beyond, rest = ("more", "less") if sign > 0 else ("less", "more")
        clause = f"where {words} is about {limit:.2g} or {beyond} (and not where it is about {near:.2g} or {rest})"
        return clause, float(np.copysign(np.sqrt(smaller * larger), limit))
    middle = (np.copysign(np.sqrt(smaller * larger), limit),) if apart else ()
    for digits in (1, 2, 3):
        for value in (float(f"{one:.{digits - 1}e}") for one in (*middle, limit, near)):
            if sign * near <= sign * value <= sign * limit:
                return f"where {words} is {'above' if sign > 0 else 'below'} about {written(value)}", value
    return f"where {words} is {'above' if sign > 0 else 'below'} about {limit:.3g}", limit


def _beyond(
    measure: Callable[[ObservedResult], Array | float | None], limit: float, sign: float
) -> Callable[[ObservedResult], Array | None]:
    def among(one: ObservedResult) -> Array | None:
        found = measure(one)
        return None if found is None else np.asarray(sign * np.asarray(found) >= sign * limit)

    return among


def place_of_cases(operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> Place | None:
    """The place that explains whole cases exactly, each case being one element; None if there is none."""
    sizes = [*_by_measure(seen, [one for one in _measures(operator) if one[2] and one[0] not in _PLACED])]
    for place in (*_of_cases(operator), *sizes):
        parts = [share(place, some) for some in (seen, fresh)]
        if all(one is not None and one.exact for one in parts):
            return place
    return None


def _places(operator: str, seen: Sequence[ObservedResult]) -> list[Place]:
    """All places where something may be wrong, the plainest first."""
    places = (*_of_cases(operator), *_of_groups(), *_along(operator), *_of_values(operator))
    return [*places, *_by_measure(seen, _measures(operator))]


def _explaining(places: Sequence[Place], seen: Sequence[ObservedResult]) -> list[tuple[Place, Share]]:
    """Those that explain what is wrong, each with its share."""
    shares = [(place, share(place, seen, explaining=True)) for place in places]
    return [(place, part) for place, part in shares if part is not None and part.explains]


def places_of(operator: str, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> list[Place]:
    """
    A few places that hold everything wrong in both seen and fresh cases, those with the highest share wrong first.
    """
    found = _explaining(_places(operator, seen), seen)
    found.sort(key=lambda one: -round(one[1].rate, 1))
    kept = [one for one, _ in _explaining([one for one, _ in found], fresh)]
    # The formula of one mode may be wrong by so little that few values show it.
    return [*kept[:_TRIED], *(one for one in kept[_TRIED:] if one.words in ("in training", "in inference"))]


def place_of_some(operator: str, seen: Sequence[ObservedResult]) -> Place | None:
    """A place with nothing wrong outside, much wrong inside, and at least as many elements outside; None if none."""
    if sum(one.wrong.any() for one in seen) < _TIMES:
        return None
    found = _explaining(_places(operator, seen), seen)
    # Large cases are few and have easy values: if nothing is wrong there, that says nothing about sizes.
    found = [(place, part) for place, part in found if not place.words.startswith(_SIZES)]
    kept = [(place, part.rate) for place, part in found if part.rate >= _PART and part.outside >= part.inside]
    # Of places with the same share, a ratio is nearer to the cause than a size.
    kept.sort(key=lambda one: (" divided by " not in one[0].words, -one[1]))
    return kept[0][0] if kept else None


def is_nearly_all_wrong(place: Place, seen: Sequence[ObservedResult], fresh: Sequence[ObservedResult]) -> bool:
    """Whether nearly all of a place is wrong and enough right values lie outside, so that it is not an accident."""
    parts = [share(place, some) for some in (seen, fresh)]
    return all(one is not None and one.rate >= _NEARLY_ALL and one.contrasts for one in parts)
