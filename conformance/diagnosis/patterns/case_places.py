"""Places of whole cases: what the cases with wrong results have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....spec.operators import OPERATORS, Operator
from ...cases.case import Case
from .formula_steps import FormulaSteps
from .place import Place

#: Multiples of these may be right, or wrong, where other numbers are not.
_BLOCKS = (3, 4, 5, 7, 8, 10, 16, 32, 64)

#: The place of 16-bit data with parameters, and running statistics, in float32.
MIXED = "where 16-bit data comes with float32 parameters"

_Test = Callable[[FormulaSteps], bool]


def case_places(operator: str) -> Iterator[Place]:
    """Each place of whole cases, the plainest first."""
    record = OPERATORS[operator]
    yield _case(MIXED, lambda steps: steps.case.mixed)
    yield from _of_parameters(record)
    yield from _of_one_number(record)
    if record.has_modes:
        yield from _of_modes()
    for role in record.optional:
        given = f"where {role} is given", f"where {role} is None"
        yield from _both_ways(*given, lambda steps, role=role: steps.case.parts.get(role) is not None)
    for role in () if record.normalises_handed else record.roles:
        if role in record.arguments and role != "branches":
            yield _case(
                f"where the {role} returned zeros", lambda steps, role=role: not steps.part(role, steps.x).any()
            )
    if record.has_branches:
        branches = "where there is one branch", "where there are several branches"
        yield from _both_ways(*branches, lambda steps: len(steps.branches) == 1)
    if record.normalises:
        yield from _both_ways("where eps is 0", "where eps is not 0", lambda steps: steps.eps == 0)
    yield from _of_shape()
    if "axes" in record.settings:
        axes = "where several axes are normalised", "where one axis is normalised"
        yield from _both_ways(*axes, lambda steps: len(steps.case.settings["axes"]) > 1)
    if record.has_channels:
        yield from _of_channels()
    if "groups" in record.settings:
        one = "where groups is 1", "where groups is more than 1"
        yield from _both_ways(*one, lambda steps: steps.case.settings["groups"] == 1)
        each = "where each channel is a group", "where a group has several channels"
        yield from _both_ways(*each, lambda steps: steps.case.layout.width == 1)
        yield from _of_number("the number of channels in a group", lambda steps: steps.case.layout.width)


def samples_of(case: Case) -> int:
    """The number of samples: they lie along the first axis that is not the channels'."""
    shape = list(case.x.shape)
    del shape[case.settings["channel_axis"] % len(shape)]
    return shape[0] if shape else 1


def _case(words: str, test: _Test) -> Place:
    return Place(words, lambda one: test(one.steps))


def _both_ways(where: str, otherwise: str, test: _Test) -> Iterator[Place]:
    yield _case(where, test)
    yield _case(otherwise, lambda steps: not test(steps))


def _of_number(words: str, number: Callable[[FormulaSteps], int]) -> Iterator[Place]:
    """Places by what divides a number."""
    yield from _both_ways(f"where {words} is odd", f"where {words} is even", lambda steps: number(steps) % 2 == 1)
    for told, test in (
        ("a power of two", lambda n: n & (n - 1) == 0),
        *((f"a multiple of {block}", lambda n, block=block: n % block == 0) for block in _BLOCKS),
    ):
        yield from _both_ways(
            f"where {words} is {told}", f"where {words} is not {told}", lambda steps, test=test: test(number(steps))
        )


def _of_parameters(record: Operator) -> Iterator[Place]:
    names = [name for name in ("gamma", "beta") if name in record.arguments]
    for name in names:
        given = f"where {name} is given", f"where {name} is None"
        yield from _both_ways(*given, lambda steps, name=name: _is_given(steps, name))
    for where, otherwise, both in _OF_BOTH if len(names) == 2 else ():
        yield from _both_ways(
            where, otherwise, lambda steps, both=both: (_is_given(steps, "gamma"), _is_given(steps, "beta")) == both
        )


#: Places by whether gamma and beta are given.
_OF_BOTH = (
    ("where both gamma and beta are given", "unless both gamma and beta are given", (True, True)),
    ("where gamma is given and beta is None", "unless gamma is given and beta is None", (True, False)),
    ("where beta is given and gamma is None", "unless beta is given and gamma is None", (False, True)),
    ("where neither gamma nor beta is given", "where gamma or beta is given", (False, False)),
)


def _of_one_number(record: Operator) -> Iterator[Place]:
    """Places of cases in which an input is 0, or 1, everywhere: code may pass such a case by."""
    for name, number in (("x", 0), ("gamma", 0), ("gamma", 1), ("beta", 0), ("logits", 0)):
        if name in record.arguments:
            words = f"where every value of {name} is {number}"
            yield _case(words, lambda steps, name=name, number=number: _has_only(steps, name, number))


def _is_given(steps: FormulaSteps, name: str) -> bool:
    return steps.given(name) is not None


def _of_modes() -> Iterator[Place]:
    yield from _both_ways("in training", "in inference", lambda steps: steps.training)
    for end in (0, 1):
        words = f"where momentum is {end}", f"where momentum is not {end}"
        yield from _both_ways(*words, lambda steps, end=end: steps.case.settings["momentum"] == end)
    for training, mode in ((True, "in training"), (False, "in inference")):
        for told, test in _IN_A_MODE:
            yield _case(
                f"{mode} where {told}",
                lambda steps, training=training, test=test: steps.training == training and test(steps),
            )


def _has_only(steps: FormulaSteps, name: str, number: float) -> bool:
    value = steps.given(name)
    return value is not None and bool((value == number).all())


#: Places within one mode: by parameters, one value a group, and where the running statistics are those of a new layer.
_IN_A_MODE: tuple[tuple[str, _Test], ...] = (
    ("gamma is given", lambda steps: _is_given(steps, "gamma")),
    ("gamma is None", lambda steps: not _is_given(steps, "gamma")),
    ("beta is given", lambda steps: _is_given(steps, "beta")),
    ("beta is None", lambda steps: not _is_given(steps, "beta")),
    ("a group has one value", lambda steps: steps.n == 1),
    ("every running mean is 0", lambda steps: _has_only(steps, "running_mean", 0)),
    ("every running variance is 1", lambda steps: _has_only(steps, "running_var", 1)),
    (
        "every running mean is 0 and every running variance is 1",
        lambda steps: _has_only(steps, "running_mean", 0) and _has_only(steps, "running_var", 1),
    ),
)


def _of_shape() -> Iterator[Place]:
    """Places by the number of groups, of values in each, and of axes."""
    one = "where there is one group", "where there are several groups"
    yield from _both_ways(*one, lambda steps: steps.count == 1)
    odd = "where the number of groups is odd", "where the number of groups is even"
    yield from _both_ways(*odd, lambda steps: steps.count % 2 == 1)
    single = "where a group has one value", "where a group has several values"
    yield from _both_ways(*single, lambda steps: steps.n == 1)
    yield from _of_number("the number of values in a group", lambda steps: steps.n)
    yield from _both_ways(
        "where there are as many groups as values in each",
        "where there are more or fewer groups than values in each",
        lambda steps: steps.count == steps.n,
    )
    for rank in (1, 2, 3, 4, 5):
        axes = "one axis" if rank == 1 else f"{rank} axes"
        words = f"where x has {axes}", f"where x does not have {axes}"
        yield from _both_ways(*words, lambda steps, rank=rank: steps.x.ndim == rank)
    lone = "where an axis of x has one element", "where each axis of x has several elements"
    yield from _both_ways(*lone, lambda steps: 1 in steps.x.shape)


def _are_last(steps: FormulaSteps) -> bool:
    return steps.case.settings["channel_axis"] % steps.x.ndim == steps.x.ndim - 1


def _of_channels() -> Iterator[Place]:
    last = "where the channels are the last axis", "where the channels are not the last axis"
    yield from _both_ways(*last, _are_last)
    beyond = "the channels are the last of three axes or more"
    yield from _both_ways(f"where {beyond}", f"unless {beyond}", lambda steps: steps.x.ndim > 2 and _are_last(steps))
    sign = "where channel_axis is negative", "where channel_axis is not negative"
    yield from _both_ways(*sign, lambda steps: steps.case.settings["channel_axis"] < 0)
    samples = "where there is one sample", "where there are several samples"
    yield from _both_ways(*samples, lambda steps: samples_of(steps.case) == 1)
    values = "where a channel of a sample has one value", "where a channel of a sample has several values"
    yield from _both_ways(*values, lambda steps: steps.x.size == samples_of(steps.case) * steps.case.layout.parameters)
    yield from _of_number("the number of channels", lambda steps: steps.case.layout.parameters)
