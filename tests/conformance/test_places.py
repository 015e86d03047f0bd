"""Places: where something is wrong, in words that hold."""

from __future__ import annotations

import pytest

from normspec.conformance.diagnosis.patterns.measured_places import Measure, _limit
from normspec.conformance.diagnosis.patterns.place import Share

from .runs import VARIANT, function, run
from .test_two_mistakes import diagnosed, larger, layer_norm_of


@pytest.mark.parametrize(
    ("limit", "near", "sign", "words", "between"),
    [
        (0.011, 0.0101, 1.0, "where eps is above about 0.011", 0.011),
        (0.0019, 0.001, 1.0, "where eps is above about 0.001", 0.001),
        (0.0078125, 0.001, 1.0, "where eps is about 0.0078 or more (and not where it is about 0.001 or less)", 0.0028),
        (0.5, 0.001, 1.0, "where eps is about 0.5 or more (and not where it is about 0.001 or less)", 0.0224),
        (0.001, 0.5, -1.0, "where eps is about 0.001 or less (and not where it is about 0.5 or more)", 0.0224),
    ],
)
def test_a_limit_is_told_as_far_as_it_is_known(limit, near, sign, words, between):
    """Where the nearest wrong and right values are far apart, no number between them is made up."""
    told, value = _limit(Measure("eps", lambda one: one.steps.eps), limit, near, sign)
    assert (told, pytest.approx(value, rel=0.01)) == (words, between)


def wrong_for_several_groups(x, gamma, beta, *, eps, axes):
    """A tenth too large where there are several groups: nearly always."""
    several = any(size > 1 for axis, size in enumerate(x.shape) if axis - x.ndim not in axes and axis not in axes)
    return larger(layer_norm_of(x, gamma, beta, eps, axes), several)


def test_a_place_of_nearly_all_cases_is_told():
    """The few cases that are right are small; all ordinary ones of the deck are looked at then."""
    (cause,) = diagnosed(wrong_for_several_groups, ("LN-F1", "LN-L7")).causes
    assert cause.sentence == "y is 1.1 times the right value where there are several groups."


def test_cases_count_where_a_place_is_one_of_whole_cases():
    """A few small cases that are right say as much as large ones; two of them, or parts of cases, do not."""
    assert Share(0, 12, 90_000, 90_000, 3, 60, 60).explains
    assert not Share(0, 12, 90_000, 90_000, 2, 60, 60).explains
    assert not Share(0, 12, 90_000, 90_000).explains
    assert not Share(1, 12, 90_000, 90_000, 3, 60, 60).explains
    assert Share(0, 12, 900, 900, 6, 60, 60).contrasts and not Share(0, 12, 900, 900, 5, 60, 60).contrasts


def test_what_few_small_cases_have_in_common_is_not_their_size():
    """The cases that are shown are simplified: if few cases are wrong, nearly all of these are small."""
    sound = VARIANT["rs-plain"].build()

    def skips_a_branch_of_zeros(x, branch, g, **settings):
        return sound.vjp(x, branch, g, **settings) if branch(x).any() else g

    report = run(function("residual", sound.call, vjp=skips_a_branch_of_zeros), explain=True)
    (cause,) = report.causes
    # The branches that return zeros for another x have no derivative, so that g is right.
    assert cause.sentence == "dx is g itself where every value of x is 0; everything else is right."


def test_an_x_of_zeros_is_told_from_a_branch_that_returned_zeros():
    """Neither parts nor their derivatives are zero there."""
    sound = VARIANT["rs-plain"].build()

    def skips_zeros(x, branch, **settings):
        return sound.call(x, branch, **settings) if x.any() else x

    report = run(function("residual", skips_zeros, vjp=sound.vjp), explain=True)
    (cause,) = report.causes
    assert cause.sentence == "y is zero where every value of x is 0; the gradients are those of the right formula."
