"""Plainer cases: what is tried to make a counterexample small, and in which order."""

from __future__ import annotations

import math
from typing import Any

import pytest

from normspec.conformance.cases.deck import deck
from normspec.conformance.cases.description import Description
from normspec.conformance.cases.plain import oddness, plainer
from normspec.conformance.cases.shapes import elements, shape_of
from normspec.spec.operators import OPERATORS

GROUPS = tuple(("uniform", index) for index in range(6))


def tried(operator: str, **like: Any) -> list[Description]:
    """Descriptions with fewer values than one of six groups, in the order in which they are tried."""
    description = Description(operator, groups=GROUPS, **like)
    values = description.n * description.count_of_groups, description.count, description.samples
    return [one for one in plainer(description) if (one.n * one.count_of_groups, one.count, one.samples) != values]


def test_groups_alone_come_first_then_halves_then_shorter_groups():
    """Every group is tried alone, since one of them may be the only one that shows the violation."""
    found = tried("layer_norm", n=12)
    assert [one.groups for one in found[:8]] == [*((group,) for group in GROUPS), GROUPS[:3], GROUPS[3:]]
    assert [one.n for one in found[:8]] == [12] * 8
    assert [(one.n, one.groups) for one in found[8:]] == [(n, GROUPS) for n in (2, 3, 4, 6, 11)]


def test_every_axis_is_made_shorter_by_itself():
    """A violation that needs several axes keeps them, each as short as it may be."""
    found = tried("layer_norm", n=12, features=(3, 4), leading=(2, 3))[13:]
    features = [(1, 4), (2, 4), (3, 1), (3, 2), (3, 3)]
    assert [(one.features, one.n) for one in found[:5]] == [(one, one[0] * one[1]) for one in features]
    leading = [(1, 3), (2, 1), (2, 2)]
    assert [(one.leading, one.groups) for one in found[5:]] == [(one, GROUPS[: one[0] * one[1]]) for one in leading]
    repeated = tried("layer_norm", n=12, leading=(2, 3), repeat=6)
    assert all(one.leading in ((2, 3), None) for one in repeated)  # its groups are no axis of their own


def test_samples_and_groups_of_channels_become_fewer():
    """With channels, the values of a group, the groups and the samples go down by themselves."""
    found = tried("group_norm", n=12, samples=3)[13:]
    assert [one.n for one in found[:4]] == [2, 4, 6, 11]
    assert [one.groups for one in found[4:8]] == [GROUPS[:count] for count in (2, 4, 3, 5)]
    assert [one.samples for one in found[8:]] == [1, 2]
    assert all(one.samples == 3 for one in found[:8])


def test_of_branches_one_and_two_are_tried_first():
    """Fewer branches are the greatest relief, and one branch is not the same as two."""
    assert [one.count for one in tried("mhc", n=3, count=5)[:3]] == [1, 2, 4]


def test_ordinary_numbers_come_before_fewer_numbers():
    """Two values of 2^-15 or 2^15 tell less than 72 small integers, and two of 2^-30 or 2^30 less again."""
    integers = Description("residual", 12, tuple(("integers", index) for index in range(6)), recipe="leaf")

    def pair(square: float) -> Description:  # of plus and minus the root of eps, which a residual connection ignores
        return Description("residual", 2, (("witness", 2),), eps=square, recipe="leaf")

    unusual, far = [pair(2.0**-30), pair(2.0**30)], [pair(2.0**-60), pair(2.0**60)]
    assert oddness(integers) < min(map(oddness, unusual))
    assert max(map(oddness, unusual)) < min(map(oddness, far))


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_plainer_case_can_be_made(operator):
    """x has as many values as the groups of a description, whatever a step to a plainer one has changed."""
    made = set()
    for description in deck(operator, "standard", 0):
        for one in plainer(description):
            if one not in made and elements(one) <= 1 << 17:
                made.add(one)
                assert math.prod(shape_of(one)) == elements(one), one
    assert made
