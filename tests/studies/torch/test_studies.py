"""Studies on PyTorch."""

from __future__ import annotations

from ..quick import outcome, same_numbers


def test_the_numbers_of_a_deterministic_study_are_those_of_numpy():
    """Every number and the verdict, as they are written."""
    assert same_numbers("depth-dynamics", "torch")


def test_a_study_that_trains_has_the_same_verdict():
    """Training makes a rounding error into another path; what is concluded stays."""
    ours, theirs = (outcome("residual-contributions", target).judgement for target in ("numpy", "torch"))
    assert (theirs.verdict, theirs.conditions) == (ours.verdict, ours.conditions)
