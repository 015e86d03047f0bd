"""Every command of docs/layers.md about Keras gives the verdict next to it."""

from __future__ import annotations

import pytest

from ..layers_page import cases, check


@pytest.mark.parametrize("row", cases(lambda row: "keras" in row.name))
def test_a_layer_of_keras_gets_its_verdict(row, checkout, tmp_path, monkeypatch):
    """Keras's own layers, a user's layer, a built instance, and a model."""
    check(row, checkout, tmp_path, monkeypatch)
