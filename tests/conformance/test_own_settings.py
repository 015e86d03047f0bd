"""Cases for targets with fixed settings: they are drawn with these settings, and none is lost."""

from __future__ import annotations

import pytest

from normspec.adapters.fixed import FixedSettings
from normspec.conformance.cases.case import build
from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.own_settings import MOST, with_own_settings

CASES = [
    ("layer_norm", FixedSettings(eps=1e-6, shape=(96,), axes=1, given=(("gamma", "beta"),))),
    ("layer_norm", FixedSettings(axes=1, native=(4,), given=((),))),
    ("rms_norm", FixedSettings(shape=(3, 4), axes=2)),
    ("batch_norm", FixedSettings(eps=1e-5, momentum=0.1, channels=16, channel_axis=1, ranks=(4,))),
    ("batch_norm", FixedSettings(channels=2)),
    ("group_norm", FixedSettings(channels=12, groups=3, channel_axis=1)),
    ("group_norm", FixedSettings(groups=1)),
    ("instance_norm", FixedSettings(channels=5)),
]


@pytest.mark.parametrize(("operator", "fixed"), CASES, ids=lambda one: str(one) if isinstance(one, str) else "")
def test_every_case_is_one_that_can_be_put(operator, fixed):
    """Size, settings and parameters of each case are the target's; the mode and absent parameters still vary."""
    put = 0
    for description in deck(operator, "quick", 0):
        drawn = with_own_settings(description, fixed)
        if drawn is None:
            continue
        case = build(drawn, "float32")
        free = FixedSettings(**{**vars(fixed), "ranks": (), "channel_axis": None})  # library.fitted sees to these
        assert free.declines(operator, case.x.shape, case.settings) is None, drawn
        assert "LN-F6" in description.requirements or free.lacks(case.inputs) is None
        assert case.x.size <= max(MOST, 4 * description.n * description.count_of_groups)
        put += 1
    assert put > 40


def test_a_case_is_not_made_larger_than_can_be_judged():
    """The sweep of many groups is left out where each group is long."""
    long = [one for one in deck("layer_norm", "quick", 0) if (one.repeat or 0) > 4000]
    assert long
    assert all(with_own_settings(one, FixedSettings(shape=(768,), axes=1)) is None for one in long)


def test_what_fixes_nothing_leaves_every_case():
    """The very same description."""
    for description in deck("layer_norm", "quick", 0):
        assert with_own_settings(description, FixedSettings()) is description
