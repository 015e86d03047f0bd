"""The cards of JAX's functions give what their source code gives."""

from __future__ import annotations

import pytest

import normspec


@pytest.mark.exhaustive  # each new shape is compiled
def test_the_card_of_standardize_is_what_its_source_says() -> None:
    """jax/_src/nn/functions.py: the variance is E[x^2] less the mean's square, and eps is added inside rsqrt."""
    found = normspec.identify("jax", op="layer_norm").card("layer_norm")
    assert found.formula == "y = gamma (x - mean) / sqrt(var + eps) + beta"
    told = {line.key: line.text for line in found.lines}
    assert (told["default_eps"], told["eps_effective"]) == ("1e-05", "as given")
    assert told["accuracy"].startswith("one-pass / centred, at ")
    assert told["nested"] == "all three"
