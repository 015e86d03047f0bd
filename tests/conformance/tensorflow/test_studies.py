"""A study on TensorFlow."""

from __future__ import annotations

import pytest

from ...studies.quick import outcome, same_conclusion, same_numbers


def test_the_numbers_of_a_deterministic_study_are_those_of_numpy():
    """Every number and the verdict, as they are written."""
    assert same_numbers("depth-dynamics", "tensorflow")


@pytest.mark.parametrize("name", ["norm-axes", "loss-landscape"])
def test_what_is_concluded_is_what_numpy_shows(name):
    """Verdict, conditions and reason agree, except for a last digit that rounding moves."""
    assert same_conclusion(name, "tensorflow")


@pytest.mark.parametrize("name", ["eps-matters", "invariances"])
def test_what_is_measured_in_envelopes_has_the_same_verdict(name):
    """An envelope is that of the target's own class of accuracy, and so are the numbers; the verdict is one."""
    assert outcome(name, "tensorflow").judgement.verdict is outcome(name).judgement.verdict
