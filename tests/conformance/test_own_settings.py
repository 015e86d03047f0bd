"""Cases for targets with fixed settings: they are drawn with these settings, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest

import normspec
from normspec import Verdict
from normspec.adapters.binding import Binding
from normspec.adapters.fixed import FixedSettings
from normspec.adapters.numpy.operators import function
from normspec.conformance.cases.case import build
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.own_settings import MOST, with_own_settings
from normspec.conformance.judging.library import fitted

CASES = [
    ("layer_norm", FixedSettings(eps=1e-6, shape=(96,), axes=1, given=(("gamma", "beta"),))),
    ("layer_norm", FixedSettings(axes=1, native=(4,), given=((),))),
    ("layer_norm", FixedSettings(axes=2, ranks=(2,))),
    ("layer_norm", FixedSettings(shape=(4096,), axes=1, ranks=(1,))),
    ("layer_norm", FixedSettings(shape=(4096,), axes=1, ranks=(3,))),
    ("rms_norm", FixedSettings(shape=(3, 4), axes=2)),
    ("batch_norm", FixedSettings(eps=1e-5, momentum=0.1, channels=16, channel_axis=1, ranks=(4,))),
    ("batch_norm", FixedSettings(channels=2)),
    ("group_norm", FixedSettings(channels=12, groups=3, channel_axis=1)),
    ("group_norm", FixedSettings(groups=1)),
    ("group_norm", FixedSettings(channels=24)),
    ("instance_norm", FixedSettings(channels=5)),
    ("batch_norm", FixedSettings(channel_axis=0, ranks=(3,))),
    ("group_norm", FixedSettings(ranks=(2,))),
    ("group_norm", FixedSettings(channels=12, groups=3, ranks=(2,))),
    ("instance_norm", FixedSettings(channels=5, channel_axis=-1, ranks=(3,))),
    ("highway", FixedSettings(ranks=(3,))),
    ("mhc", FixedSettings(ranks=(4,))),
    ("pre_norm", FixedSettings(ranks=(1,), given=((),))),
]


@pytest.mark.parametrize(("operator", "fixed"), CASES, ids=lambda one: str(one) if isinstance(one, str) else "")
def test_every_case_is_one_that_can_be_put(operator, fixed):
    """Size, settings and parameters of each case are the target's; the mode and absent parameters still vary."""
    binding, put, declined = Binding(operator, "own", function(operator), fixed=fixed), 0, 0
    for description in deck(operator, "quick", 0):
        drawn = fitted(description, binding)
        if drawn is None:
            continue
        case = build(drawn, "float32")
        if reason := fixed.declines(operator, case.x.shape, case.settings):  # a case may be about its rank or axis
            assert case.record.has_channels and ("rank" in reason or "axis" in reason), drawn
            declined += 1
            continue
        assert "LN-F6" in description.requirements or fixed.lacks(case.inputs) is None
        assert case.x.size <= max(MOST, 4 * description.n * description.count_of_groups)
        put += 1
    assert put > max(40, 8 * declined)


def test_a_case_is_not_made_larger_than_can_be_judged():
    """The sweep of many groups is left out where each group is long."""
    long = [one for one in deck("layer_norm", "quick", 0) if (one.repeat or 0) > 4000]
    assert long
    assert all(with_own_settings(one, FixedSettings(shape=(768,), axes=1)) is None for one in long)


def test_what_fixes_nothing_leaves_every_case():
    """The very same description."""
    for description in deck("layer_norm", "quick", 0):
        assert with_own_settings(description, FixedSettings()) is description


SIX = tuple(("witness", index) for index in range(6))


def drawn(operator: str, fixed: FixedSettings, **like: Any) -> Description:
    """The description of six different groups, for this target."""
    found = with_own_settings(Description(operator, groups=SIX, **like), fixed)
    assert found is not None
    return found


def test_the_rank_changes_only_where_the_target_takes_no_such_rank():
    """Leading axes that fit stay as they are; others become as many as the target takes, over the same groups."""
    like = {"n": 12, "leading": (1, 6)}
    for stays in (FixedSettings(eps=1e-5), FixedSettings(ranks=(3,)), FixedSettings(native=(2, 3))):
        assert drawn("layer_norm", stays, **like).leading == (1, 6)
    assert drawn("layer_norm", FixedSettings(ranks=(4,)), **like).leading == (3, 1, 2)
    assert drawn("layer_norm", FixedSettings(ranks=(2,)), **like).leading is None  # one axis of six
    assert drawn("layer_norm", FixedSettings(ranks=(3, 4), axes=3), **like).leading is None
    whole = drawn("layer_norm", FixedSettings(ranks=(3,), axes=3), **like)  # no axis is left for groups
    assert (whole.leading, whole.groups, whole.count_of_groups) == ((), SIX[:1], 1)


def test_parts_that_read_along_an_axis_are_left_out_where_there_is_none():
    """x of rank 1 has only its features."""
    convolution, plain = (Description("residual", groups=SIX, n=4, recipe=one) for one in ("convolution", "linear"))
    assert with_own_settings(convolution, FixedSettings(ranks=(1,))) is None
    assert with_own_settings(plain, FixedSettings(ranks=(1,))) is not None
    assert with_own_settings(convolution, FixedSettings(ranks=(3,))) is not None


def test_fewer_channels_than_groups_keep_some_from_every_stretch():
    """The first groups are no more like the last than any others."""
    assert drawn("batch_norm", FixedSettings(channels=3), n=4).groups == (SIX[0], SIX[2], SIX[4])
    assert drawn("batch_norm", FixedSettings(channels=4), n=4).groups == (SIX[0], SIX[1], SIX[3], SIX[4])
    more = drawn("batch_norm", FixedSettings(channels=8), n=4)
    assert (more.groups, more.count_of_groups) == (SIX, 8)


@pytest.mark.parametrize(("n", "positions", "rank"), [(2, 1, 2), (4, 1, 2), (9, 2, 3), (12, 3, 3)])
def test_a_group_has_the_channels_of_the_target_and_the_nearest_count_of_positions(n, positions, rank):
    """Twelve channels in three groups: a group of n values becomes one of 4 channels and about n / 4 positions."""
    found = drawn("group_norm", FixedSettings(channels=12, groups=3), n=n)
    assert (found.width, found.n, found.samples, found.rank) == (4, 4 * positions, 2, rank)


@pytest.mark.parametrize(("wrong", "conforms"), [("", True), (" * 1.01", False)])
def test_a_function_of_one_group_is_judged_and_diagnosed(tmp_path, wrong, conforms):
    """A function that normalises all of x has one group a call: no case has more, and nothing of ours fails."""
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def layer_norm(x, gamma, beta, *, eps, axes):\n"
        "    assert x.ndim == 2\n"
        "    z = x.astype(np.float64)\n"
        f"    y = (z - z.mean()) / np.sqrt(z.var() + eps{wrong})\n"
        "    y = y * (1 if gamma is None else gamma) + (0 if beta is None else beta)\n"
        "    return y.astype(x.dtype)\n"
    )
    report = normspec.check(
        f"{tmp_path / 'own.py'}:layer_norm", fixed={"rank": 2, "axes": -2}, profile="quick", dtypes=["float32"],
        forward_only=True, cache=False,
    )  # fmt: skip
    assert report.conforms is conforms
    assert not report.notes and not [one for one in report.results if one.verdict is Verdict.ERROR]
    assert bool(report.causes) is not conforms


@pytest.mark.parametrize(
    ("rank", "shape", "laws"),
    [
        (3, "batch, tokens, features", ["LN-L7", "LN-L8", "LN-L16", "LN-L17"]),
        (1, "(features,)", ["LN-L7", "LN-L8"]),  # there is no other group
    ],
)
def test_a_function_of_one_rank_is_judged_by_the_laws_about_other_groups(tmp_path, rank, shape, laws):
    """A group alone, or between others, keeps the rank of x: (batch, tokens, features) is what many functions take."""
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def layer_norm(x, gamma, beta, *, eps, axes):\n"
        f"    {shape} = x.shape\n"
        "    z = x.astype(np.float64)\n"
        "    y = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + eps)\n"
        "    y = y * (1 if gamma is None else gamma) + (0 if beta is None else beta)\n"
        "    return y.astype(x.dtype)\n"
    )
    report = normspec.check(
        f"{tmp_path / 'own.py'}:layer_norm", fixed={"rank": rank, "axes": -1}, profile="quick", dtypes=["float32"],
        forward_only=True, cache=False, only=laws,
    )  # fmt: skip
    assert {one.requirement: one.verdict for one in report.results} == dict.fromkeys(laws, Verdict.PASS)


@pytest.mark.parametrize(
    ("operator", "axis", "laws"),
    [("group_norm", -1, ["GN-L7", "GN-L8"]), ("group_norm", 2, ["GN-L7"]), ("batch_norm", 0, ["BN-L6", "BN-F1"])],
)
def test_channels_in_a_fixed_axis_are_judged_there(operator, axis, laws):
    """A group alone is compared in the order of the axes that it has there, and no case is left out for the axis."""
    sound = function(operator)

    def own(*tensors: Any, **settings: Any) -> Any:
        return sound(*tensors, channel_axis=axis, **settings)

    report = normspec.check(
        own, op=operator, framework="numpy", fixed={"channel_axis": str(axis), "rank": "4"}, profile="quick",
        dtypes=["float32"], forward_only=True, cache=False, only=laws,
    )  # fmt: skip
    assert {one.requirement: one.verdict for one in report.results} == dict.fromkeys(laws, Verdict.PASS)
