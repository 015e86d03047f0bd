"""The cards of TensorFlow's functions give what their source code gives."""

from __future__ import annotations

import pytest

import normspec


@pytest.mark.exhaustive  # TensorFlow dispatches each new shape again
def test_the_card_of_batch_normalization_is_what_its_source_says() -> None:
    """tf.nn.moments has the biased variance, and tf.nn.batch_normalization adds eps inside rsqrt."""
    found = normspec.identify("tensorflow", op="layer_norm").card("layer_norm")
    assert found.formula == "y = gamma (x - mean) / sqrt(var + eps) + beta"
    told = {line.key: line.text for line in found.lines}
    assert (told["variance"], told["eps_effective"]) == ("biased (n)", "as given")
    assert told["gradients"] == "yes"
