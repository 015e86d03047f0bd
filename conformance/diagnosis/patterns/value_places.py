"""Places of groups, samples, channels and values: those with a number, a sign or a content."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ....spec.operators import OPERATORS
from .formula_steps import Array, FormulaSteps
from .observing import ObservedResult
from .place import Place, Quantity, by_group, in_x_shape

#: Whether something is in a place, given its number and how many there are.
_Numbered = Callable[[Array, int], Array]

#: Places by number; {0} and {1} are what is numbered, "value of each group" and "value of a group".
_BY_NUMBER: tuple[tuple[str, _Numbered], ...] = (
    ("in the first {0}", lambda i, n: i == 0),
    ("in the last {0}", lambda i, n: i == n - 1),
    ("in every {1} but the first", lambda i, n: i > 0),
    ("in every {1} but the last", lambda i, n: i < n - 1),
    ("in every second {1}, the second first", lambda i, n: i % 2 == 1),
    ("in every second {1}, the first first", lambda i, n: i % 2 == 0),
)

#: The axes along which groups lie, if there are channels.
AXES: tuple[tuple[str, Callable[[FormulaSteps], int]], ...] = (
    ("sample", lambda steps: 0),
    ("channel", lambda steps: steps.case.settings["channel_axis"] % steps.x.ndim),
)


def value_places(operator: str) -> Iterator[Place]:
    """Each place of groups, of samples and channels, and of values, the plainest first."""
    yield from _of_groups()
    if OPERATORS[operator].has_channels:
        yield from _of_samples_and_channels()
    yield from _of_numbered_values()
    yield from _of_contents(operator)


def along_axis(axis: Callable[[FormulaSteps], int], test: _Numbered) -> Quantity:
    """What a test says of the numbers along an axis."""

    def laid_out(one: ObservedResult) -> Array:
        own = axis(one.steps)
        size = one.got.shape[own]
        return test(np.arange(size), size).reshape([size if other == own else 1 for other in range(one.got.ndim)])

    return in_x_shape(laid_out)


def _of_groups() -> Iterator[Place]:
    for words, test in _BY_NUMBER:
        yield Place(
            words.format("group", "group"), by_group(lambda steps, test=test: test(np.arange(steps.count), steps.count))
        )
    for words, quantity in (
        (
            "in the last group, where their number is odd",
            lambda steps: np.arange(steps.count) == (steps.count - 1 if steps.count % 2 else -1),
        ),
        ("in groups whose values are all equal", lambda steps: np.ptp(steps.data, axis=1) == 0),
        ("in groups whose mean is negative", lambda steps: _sign(steps, -1)),
        ("in groups whose mean is positive", lambda steps: _sign(steps, 1)),
        ("in groups that hold a zero", lambda steps: (steps.data == 0).any(axis=1)),
        ("in groups without a negative value", lambda steps: (steps.data >= 0).all(axis=1)),
    ):
        yield Place(words, by_group(quantity))


def _sign(steps: FormulaSteps, sign: int) -> Array:
    """1 where the mean of a group has a sign, NaN where roundings decide the sign."""
    mean = steps.data.mean(axis=1)
    unsure = np.abs(mean) <= 1e-5 * np.abs(steps.data).max(axis=1)
    return np.where(unsure, np.nan, sign * mean > 0)


def _of_samples_and_channels() -> Iterator[Place]:
    for what, axis in AXES:
        for words, test in _BY_NUMBER:
            yield Place(words.format(what, what), along_axis(axis, test))


def _of_numbered_values() -> Iterator[Place]:
    for words, test in _BY_NUMBER:
        yield _numbered(words.format("value of each group", "value of a group"), test)
    yield _numbered("in the second half of each group", lambda i, n: i >= n // 2)
    for block in (2, 4, 8, 16, 32, 64, 128):
        words = f"after the last whole block of {block} values of a group"
        yield _numbered(words, lambda i, n, block=block: i >= n - n % block)


def _numbered(words: str, test: _Numbered) -> Place:
    """A place of values by number within their group, and of parameters by number."""

    def among(one: ObservedResult) -> Array:
        if one.has_x_shape:
            return one.steps.back(test(np.arange(one.steps.n), one.steps.n)[None, :])
        return test(np.arange(one.got.size), one.got.size).reshape(one.got.shape)

    return Place(words, among)


def _of_contents(operator: str) -> Iterator[Place]:
    def given(name: str, words: str, test: Callable[[Array], Array]) -> Place:
        def among(one: ObservedResult) -> Array | None:
            if one.name == f"d{name}":  # a gradient lies beside what it is the gradient of
                return test(np.asarray(one.steps.given(name)))
            return test(getattr(one.steps, name)) if one.has_x_shape else None

        return Place(words, among)

    record = OPERATORS[operator]
    parameters = [name for name in ("gamma", "beta") if name in record.arguments]
    for name, words in [*((one, one) for one in ("x", *parameters)), ("g", "the cotangent")]:
        yield given(name, f"where {words} is negative", lambda value: value < 0)
        yield given(name, f"where {words} is positive", lambda value: value > 0)
        yield given(name, f"where {words} is 0", lambda value: value == 0)
        yield given(name, f"where {words} is not 0", lambda value: value != 0)
    yield Place("where the right value is negative", lambda one: one.expected < 0)
    yield Place("where the right value is positive", lambda one: one.expected > 0)
    if record.normalises:
        yield given("xhat", "where x is above the mean of its group", lambda value: value > 0)
        yield given("xhat", "where x is below the mean of its group", lambda value: value < 0)
    if record.has_gates:
        yield given("gate", "where the transform gate is above 1/2", lambda value: value > 0.5)
        yield given("gate", "where the transform gate is below 1/2", lambda value: value < 0.5)
