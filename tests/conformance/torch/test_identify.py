"""The cards of PyTorch's layers agree with its source code."""

from __future__ import annotations

import normspec


def test_the_cards_of_torch_are_what_its_source_says() -> None:
    """aten/src/ATen/native: the variance is centred; momentum weighs the new, and the running variance is unbiased."""
    found = normspec.identify("torch", op=["layer_norm", "batch_norm"])
    layer, batch = found.card("layer_norm"), found.card("batch_norm")
    assert layer.formula == batch.formula == "y = gamma (x - mean) / sqrt(var + eps) + beta"
    told = {line.key: line.text for line in layer.lines}
    assert (told["default_eps"], told["eps_effective"], told["variance"]) == ("1e-05", "as given", "biased (n)")
    assert told["accuracy"].startswith("centred / centred, at ")
    assert (told["gradients"], told["nested"]) == ("yes", "all three")
    told = {line.key: line.text for line in batch.lines}
    assert (told["momentum"], told["default_momentum"]) == ("the new", "0.1 of the new")
    assert told["running_variance"] == "Bessel (n - 1)"
