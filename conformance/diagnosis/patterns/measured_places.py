"""Places by the size of something: above or below a limit that separates wrong values from right ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs
import numpy as np

from ....spec.operators import OPERATORS, Groups
from ...judging.truth import is_about_gradients
from .case_places import samples_of
from .formula_steps import Array, broadcast
from .numbers import written
from .observing import ObservedResult
from .place import Place, Quantity, by_group, in_x_shape
from .value_places import AXES, along_axis

#: What is smaller than this, compared with the smallest right value, is 0 apart from rounding.
_NOTHING = 2.0**-40
#: If a wrong and a right value are apart by more than this factor, both are said: the limit is anywhere between them.
_FAR_APART = 2.0


@attrs.frozen
class Measure:
    """A quantity by which a place may be bounded."""

    words: str
    of: Quantity
    #: Whether it is a whole number.
    whole: bool = False
    #: What it numbers, from 0 on; "" if it is not such a number.
    numbers: str = ""
    #: The sides of a limit on which code may go wrong: above it (1), below it (-1).
    sides: tuple[float, ...] = (1.0, -1.0)


def measures(operator: str) -> Iterator[Measure]:
    """The quantities by which a place may be bounded."""
    record = OPERATORS[operator]
    yield Measure("the number of values in a group", lambda one: one.steps.n, whole=True)
    yield Measure("the number of groups", lambda one: one.steps.count, whole=True)
    yield Measure("the number of values of x", lambda one: one.case.x.size, whole=True)
    if "axes" in record.settings:
        yield Measure("the number of normalised axes", lambda one: len(one.case.settings["axes"]), whole=True)
    yield Measure("the number of axes of x", lambda one: one.case.x.ndim, whole=True)
    if record.has_channels:
        yield Measure("the number of samples", lambda one: samples_of(one.case), whole=True)
    else:
        yield Measure("the length of the first axis of x", lambda one: one.case.x.shape[0], whole=True)
    if record.groups is Groups.SAMPLE_CHANNELS or record.has_modes:
        yield Measure("the number of channels", lambda one: one.case.layout.parameters, whole=True)
    if "groups" in record.settings:
        yield Measure("the number of groups of a sample", lambda one: one.case.settings["groups"], whole=True)
    if record.has_branches:
        yield Measure("the number of branches", lambda one: len(one.steps.branches), whole=True)
    if record.normalises:
        yield Measure("eps", lambda one: one.steps.eps)
    if record.has_modes:
        yield Measure("momentum", lambda one: float(one.case.settings["momentum"]))
    yield Measure("the magnitude of the right value", lambda one: np.abs(one.expected))
    yield Measure("the right value", lambda one: one.expected)
    yield Measure("|x|", in_x_shape(lambda one: np.abs(one.steps.x)))
    yield Measure("x", in_x_shape(lambda one: one.steps.x))
    if record.normalises:  # a limit of small groups is of this more often than of the values, which are small too
        yield Measure("the variance of the group", by_group(lambda steps: steps.variance))
    yield Measure("the largest |x| of the group", by_group(lambda steps: np.abs(steps.data).max(axis=1)))
    if "gamma" in record.arguments:
        yield Measure("|gamma|", in_x_shape(lambda one: np.abs(one.steps.gamma)))
        yield Measure("gamma", in_x_shape(lambda one: one.steps.gamma))
    if "beta" in record.arguments:
        yield Measure("|beta|", in_x_shape(lambda one: np.abs(one.steps.beta)))
    if record.normalises:
        yield Measure("xhat", in_x_shape(lambda one: one.steps.xhat))
        yield Measure("|xhat|", in_x_shape(lambda one: np.abs(one.steps.xhat)))
        yield Measure(
            "the variance divided by eps",
            by_group(lambda steps: steps.variance / steps.eps if steps.eps else np.full((steps.count, 1), np.inf)),
        )
        yield Measure(  # a mean near zero harms nothing; but large cases have one, and may be wrong for their size
            "|mean| divided by the deviation",
            by_group(lambda steps: np.abs(steps.mean) / np.sqrt(steps.variance)),
            sides=(1.0,),
        )
        whole = in_x_shape(lambda one: np.full(one.got.shape, np.abs(one.steps.g).max()))
        yield _of_gradients("the largest |g|", whole)
        largest = by_group(lambda steps: np.abs(steps.rows(steps.g)).max(axis=1))
        yield _of_gradients("the largest |g| of the group", largest)
    yield _of_gradients("|g|", in_x_shape(lambda one: np.abs(one.steps.g)))
    if record.has_gates:
        yield Measure("the transform gate", in_x_shape(lambda one: _neither_open_nor_shut(one.steps.gate)))
        yield Measure("the transform gate's logit", in_x_shape(lambda one: one.steps.part("gate", one.steps.x)))
    yield Measure(
        "the place in the group",
        in_x_shape(lambda one: one.steps.back(np.arange(one.steps.n)[None, :])),
        whole=True,
        numbers="values of each group",
    )
    for what, axis in AXES if record.has_channels else ():
        yield Measure(
            f"the place among the {what}s",
            along_axis(axis, lambda i, n: i),
            whole=True,
            numbers=f"{what}s",
        )
    yield Measure(
        "the place among the groups", by_group(lambda steps: np.arange(steps.count)), whole=True, numbers="groups"
    )


def _of_gradients(words: str, of: Quantity) -> Measure:
    """A measure of the cotangent, on which only gradients depend."""
    return Measure(words, lambda one: of(one) if is_about_gradients(one.name, one.case.inputs) else None)


def _neither_open_nor_shut(gate: Array) -> Array:
    """The gate, but NaN where it is 0 or 1: its logit tells more there."""
    return np.where((gate > 0) & (gate < 1), gate, np.nan)


def measured_places(seen: Sequence[ObservedResult], measures: Iterable[Measure]) -> Iterator[Place]:
    """Places above or below a limit that separates wrong values from right ones."""
    for measure in measures:
        wrong, right = _parted(measure.of, seen)
        if not wrong.size or not right.size:
            continue
        for sign in measure.sides:
            edge = float((sign * wrong).min())
            below = sign * right[sign * right < edge]
            # With an eps of 0 some quantities are infinite: no number separates these from finite ones.
            if not below.size or not np.isfinite((edge, below.max())).all():
                continue
            limit, near = sign * edge, sign * float(below.max())
            if sign < 0 and wrong.min() >= 0 and limit <= _NOTHING * near:
                clause, value = f"where {measure.words} is 0{' or next to it' if limit else ''}", limit
            else:
                clause, value = _limit(measure, limit, near, sign)
            yield Place(clause, partial(_beyond, measure.of, value, sign))


def _parted(quantity: Quantity, seen: Sequence[ObservedResult]) -> tuple[Array, Array]:
    """The quantity of the wrong values, and of the right ones; none if it does not apply to some case."""
    wrong, right = [], []
    for one in seen:
        found = quantity(one)
        if found is None:
            return np.empty(0), np.empty(0)
        laid = broadcast(np.asarray(found, np.float64), one.got.shape)
        wrong.append(laid[one.wrong])
        right.append(laid[one.judged & ~one.wrong])
    every_wrong, every_right = np.concatenate(wrong), np.concatenate(right)
    return every_wrong[~np.isnan(every_wrong)], every_right[~np.isnan(every_right)]


def _limit(measure: Measure, limit: float, near: float, sign: float) -> tuple[str, float]:
    """Words for the values at and beyond a limit, and a number between both sides."""
    words = measure.words
    if measure.numbers:
        first = int(limit) if sign > 0 else int(limit) + 1
        return f"{'after' if sign > 0 else 'in'} the first {first} {measure.numbers}", limit
    if measure.whole:
        return f"where {words} is {written(limit)} or {'more' if sign > 0 else 'less'}", limit
    smaller, larger = sorted((abs(limit), abs(near)))
    if limit * near > 0 and larger > _FAR_APART * smaller:
        beyond, rest = ("more", "less") if sign > 0 else ("less", "more")
        clause = f"where {words} is about {limit:.2g} or {beyond} (and not where it is about {near:.2g} or {rest})"
        return clause, float(np.copysign(np.sqrt(smaller * larger), limit))
    for digits in (1, 2, 3):
        for value in (float(f"{one:.{digits - 1}e}") for one in (limit, near)):
            if sign * near <= sign * value <= sign * limit:
                return f"where {words} is {'above' if sign > 0 else 'below'} about {written(value)}", value
    return f"where {words} is {'above' if sign > 0 else 'below'} about {limit:.3g}", limit


def _beyond(quantity: Quantity, limit: float, sign: float, one: ObservedResult) -> Array | None:
    found = quantity(one)
    return None if found is None else np.asarray(sign * np.asarray(found) >= sign * limit)
