"""Descriptions of one mistake in several dtypes become one."""

from __future__ import annotations

import pytest

from normspec.conformance.diagnosis.alike import in_one

TEXT = "y is wrong in {} of 49 cases, always where eps is below about {}; the largest error is {} % of the largest."


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ((26, "0.003", "40"), (28, "0.003", "9.5"), None),  # the errors are too far apart
        ((26, "0.003", "40"), (28, "0.003", "39"), ("26 to 28", "0.003", "39 to 40")),
        (("25 to 26", "1e-05", "40"), (28, "2e-05", "40"), ("25 to 28", "1e-05 to 2e-05", "40")),
        (("25 to 28", "1e-05", "40"), (27, "1e-05", "40"), ("25 to 28", "1e-05", "40")),
        ((26, "0.003", "40"), (26, "3", "40"), None),
    ],
)
def test_numbers_that_roundings_move_become_ranges(one, other, both):
    """How often it shows, and about where, may differ between dtypes; the factor of a threshold may not."""
    assert in_one(TEXT.format(*one), TEXT.format(*other)) == (None if both is None else TEXT.format(*both))


@pytest.mark.parametrize(
    "other",
    [
        "y is 3 times the right value; wrong in 7 of 9 cases",
        "y is 2 times the right value; wrong in 7 of 90 cases",
        "dx is 2 times the right value; wrong in 7 of 9 cases",
        "y is 2 times the right value",
    ],
)
def test_what_is_said_must_be_the_same(other):
    """A factor and what is wrong must not differ, and the number of cases not by much."""
    assert in_one("y is 2 times the right value; wrong in 7 of 9 cases", other) is None


@pytest.mark.parametrize("words", ["y is wrong in {} of {} cases.", "The call raises ValueError: n in {} of {} cases."])
def test_a_dtype_may_lack_some_cases(words):
    """How many cases there are differs too, as some data have no values in a dtype."""
    assert in_one(words.format(59, 274), words.format(62, 275)) == words.format("59 to 62", "274 to 275")
    both = in_one(words.format("59 to 62", "274 to 275"), words.format(60, 270))
    assert both == words.format("59 to 62", "270 to 275")
