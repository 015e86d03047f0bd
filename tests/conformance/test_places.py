"""Places: where something is wrong, in words that hold."""

from __future__ import annotations

import pytest

from normspec.conformance.diagnosis.patterns.places import _limit


@pytest.mark.parametrize(
    ("limit", "near", "sign", "words", "between"),
    [
        (0.011, 0.0101, 1.0, "where eps is above about 0.011", 0.011),
        (0.0078125, 0.001, 1.0, "where eps is above about 0.003", 0.003),
        (0.5, 0.001, 1.0, "where eps is about 0.5 or more (and not where it is about 0.001 or less)", 0.0224),
        (0.001, 0.5, -1.0, "where eps is about 0.001 or less (and not where it is about 0.5 or more)", 0.0224),
    ],
)
def test_a_limit_is_told_as_far_as_it_is_known(limit, near, sign, words, between):
    """Where the nearest wrong and right values are far apart, no number between them is made up."""
    told, value = _limit("eps", limit, near, sign, whole=False)
    assert (told, pytest.approx(value, rel=0.01)) == (words, between)
