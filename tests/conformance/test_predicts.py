"""What the function of an entry of known violations returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec.adapters.known import Failure, KnownViolation


@pytest.mark.parametrize(
    ("returned", "covered"),
    [(True, True), (np.True_, True), (False, False), (None, False), (np.nan, False), (np.array([np.nan]), False)],
)
def test_only_a_truth_value_predicts(returned: Any, covered: bool) -> None:
    """A function that returns nothing on one of its paths excuses nothing there."""
    entry = KnownViolation("LN-F3", "as it is", predicts=lambda failure: returned)
    failure = Failure("y", "", {"x": np.zeros((1, 2))}, {"eps": 1e-5, "axes": (-1,)})
    assert bool(np.all(entry.covers(failure))) is covered


def test_an_array_answers_for_each_element() -> None:
    """True where the value was predicted."""
    entry = KnownViolation("LN-F3", "as it is", predicts=lambda failure: np.array([True, False]))
    failure = Failure("y", "", {"x": np.zeros((1, 2))}, {"eps": 1e-5, "axes": (-1,)})
    assert np.asarray(entry.covers(failure)).tolist() == [True, False]
