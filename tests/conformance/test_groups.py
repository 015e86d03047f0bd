"""Single groups, groups in another order and groups in other dimensions, in arrays that count from 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from normspec.adapters.binding import Binding
from normspec.conformance.cases.case import Case, build
from normspec.conformance.cases.description import Description
from normspec.conformance.checks.groups import group_count, only_group, some_groups
from normspec.conformance.checks.laws_exact import _permuted_groups, stored_exactly
from normspec.conformance.judging.library import Library, fitted
from normspec.conformance.judging.subject import Subject

from .runs import VARIANT, specimen


def counted(operator: str, shape: tuple[int, ...], parameter: tuple[int, ...], **settings: int) -> Case:
    """A case whose values are their positions; gamma counts from 100, beta from 200."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    inputs = {"x": x, **{n: np.arange(s, s + np.prod(parameter), dtype=np.float32).reshape(parameter) for n, s in _AT}}
    return Case(operator, inputs, {"eps": 0.5, **settings}, 1000 + x)


_AT = (("gamma", 100), ("beta", 200))


def values(case: Case) -> tuple[list[float], ...]:
    """x, its cotangent, gamma and beta, one after the other."""
    arrays = (case.x, case.g, case.inputs["gamma"], case.inputs["beta"])
    return tuple([] if one is None else one.reshape(-1).tolist() for one in arrays)


@pytest.mark.parametrize(
    ("group", "x", "channels"),
    [
        (0, [0, 1, 2, 3], [0, 1]),
        (1, [4, 5, 6, 7], [2, 3]),
        (3, [12, 13, 14, 15], [0, 1]),
        (5, [20, 21, 22, 23], [4, 5]),
    ],
)
def test_a_group_of_channels_alone_has_its_own_parameters(group: int, x: list[int], channels: list[int]) -> None:
    """In two samples with three groups of two channels: the group's values, with gamma and beta of its channels."""
    alone = only_group(counted("group_norm", (2, 6, 2), (6,), groups=3, channel_axis=1), group)
    assert alone.x.shape == (1, 2, 2) and alone.settings["groups"] == 1
    parameters = [[start + channel for channel in channels] for _, start in _AT]
    assert values(alone) == (x, [1000 + value for value in x], *parameters)


def test_a_group_alone_where_there_are_two_to_a_sample() -> None:
    """Two groups of one channel each are distinguished too."""
    alone = only_group(counted("instance_norm", (1, 2, 3), (2,), channel_axis=1), 1)
    assert alone.x.shape == (1, 1, 3)
    assert values(alone) == ([3, 4, 5], [1003, 1004, 1005], [101], [201])


def test_a_row_alone_keeps_all_parameters() -> None:
    """A row of layer_norm is a batch of one; its parameters are those of every row."""
    alone = only_group(counted("layer_norm", (3, 2), (2,), axes=(-1,)), 2)  # type: ignore[arg-type]
    assert alone.x.shape == (1, 2)
    assert values(alone) == ([4, 5], [1004, 1005], [100, 101], [200, 201])


def test_a_row_alone_keeps_the_rank() -> None:
    """Among rows along two axes, the fourth of six is a sequence of one in a batch of one."""
    alone = only_group(counted("layer_norm", (3, 2, 2), (2,), axes=(-1,)), 3)  # type: ignore[arg-type]
    assert alone.x.shape == (1, 1, 2)
    assert values(alone) == ([6, 7], [1006, 1007], [100, 101], [200, 201])


@pytest.mark.parametrize(("count", "chosen"), [(1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (6, (0, 3, 5)), (7, (0, 3, 6))])
def test_the_first_the_middle_and_the_last_group_are_chosen(count: int, chosen: tuple[int, ...]) -> None:
    """Each once."""
    case = counted("layer_norm", (count, 2), (2,), axes=(-1,))  # type: ignore[arg-type]
    assert (group_count(case), some_groups(case)) == (count, chosen)


def test_groups_without_values_are_none() -> None:
    """Rows of length 0 are not counted."""
    case = counted("layer_norm", (3, 0), (0,), axes=(-1,))  # type: ignore[arg-type]
    assert (group_count(case), some_groups(case)) == (0, ())


@pytest.mark.parametrize("operator", ["layer_norm", "group_norm", "instance_norm"])
def test_groups_move_with_their_parameters(operator: str) -> None:
    """In another order each group still has the gamma of its channels, and the order says where it came from."""
    if operator == "layer_norm":
        case = counted(operator, (6, 4), (4,), axes=(-1,))  # type: ignore[arg-type]
    else:
        settings = {"channel_axis": 1, **({"groups": 3} if operator == "group_norm" else {})}
        case = counted(operator, (4, 6, 2), (6,), **settings)
    moved, order = _permuted_groups(case)
    rows, layout = case.layout.rows(case.x), case.layout
    assert sorted(order.tolist()) == list(range(len(rows))) and order.tolist() != sorted(order.tolist())
    np.testing.assert_array_equal(layout.rows(moved.x), rows[order])
    np.testing.assert_array_equal(layout.rows(moved.g), 1000 + rows[order])
    if operator != "layer_norm":

        def of_groups(one: Case) -> np.ndarray:
            gamma = one.inputs["gamma"]
            assert gamma is not None
            return one.layout.rows(np.broadcast_to(gamma[:, None], one.x.shape))

        np.testing.assert_array_equal(of_groups(moved), of_groups(case)[order])


@pytest.mark.parametrize(
    ("storage", "scale", "exactly"),
    [("H0", 2.0**-12, True), ("H2", 2.0**-12, False), ("H2", 1.0, True), ("H2", 0.0, True)],
)
def test_statistics_that_are_stored_stay_normal_when_scaled(storage: str, scale: float, exactly: bool) -> None:
    """Stored in float16, a mean or variance other than 0 must be 64 times the smallest normal number, 2^-14."""
    target = specimen(VARIANT["ln-two-pass"])
    subject = Subject(target, target.bindings[0], "float16", conventions={"storage": storage})
    case = build(Description("layer_norm", 2, (("normal", 0),), eps=1.0), "float16")
    case = case.replace(x=np.array([[scale, -scale]], np.float16))
    assert stored_exactly(subject, case) is exactly


def taking(ranks: Sequence[int]) -> Binding:
    """A binding of batch_norm that accepts x with this many dimensions."""

    def accepts(shape: tuple[int, ...], settings: object) -> str | None:
        return None if len(shape) in ranks else "another number of dimensions"

    return Binding("batch_norm", "own", lambda *_, **__: None, accepts=accepts)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("ranks", "found"), [((2, 3, 4, 5), 3), ((2, 4, 5), 4), ((2,), 2), ((5,), 5), ((2, 5), 2), ((6,), 3)]
)
def test_a_case_is_spread_over_dimensions_that_a_binding_takes(ranks: Sequence[int], found: int) -> None:
    """Its own number if accepted, otherwise 4, 2 or 5; if none is, it stays the same and the call says why."""
    spread = fitted(Description("batch_norm", 4, (("normal", 0),) * 2, rank=3, channel_axis=1), taking(ranks))
    assert spread is not None and spread.rank == found


def test_a_case_about_its_dimensions_keeps_them() -> None:
    """LN-F7: it is left out where the binding takes another number alone; where it takes none, its call says why."""
    like = {"rank": 3, "channel_axis": 1, "requirements": frozenset({"LN-F7"})}
    case = Description("batch_norm", 4, (("normal", 0),) * 2, **like)
    assert fitted(case, taking((2, 3, 4))) == case
    assert fitted(case, taking((2, 4))) is None
    assert fitted(case, taking((6,))) == case


def test_a_library_has_the_cases_of_one_dtype() -> None:
    """A case is built once; only with 16-bit data does a mixed case have float32 parameters."""
    plain = Description("layer_norm", 4, (("normal", 0),))
    mixed = Description("layer_norm", 4, (("normal", 0),), mixed=True)
    assert (plain.seed, plain.training, plain.momentum, plain.eps) == (0, True, 0.25, 1e-5)
    for dtype, held in (("float16", "float32"), ("float64", "float64")):
        library = Library(dtype)
        assert library.case(plain) is library.case(plain)
        gamma = library.case(mixed).inputs["gamma"]
        assert gamma is not None and gamma.dtype == held and library.case(mixed).x.dtype == dtype
