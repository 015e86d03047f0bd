"""A study on JAX."""

from __future__ import annotations

from ...studies.quick import same_numbers


def test_the_numbers_of_a_deterministic_study_are_those_of_numpy():
    """Every number and the verdict, as they are written."""
    assert same_numbers("depth-dynamics", "jax")
