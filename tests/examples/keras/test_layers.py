"""Every command of docs/layers.md about Keras gives the verdict that stands beside it."""

from __future__ import annotations

import pytest

from ..layers_page import check, rows


@pytest.mark.parametrize(
    "row", [pytest.param(one, id=" ".join(one.command[1:])) for one in rows() if "keras" in one.name]
)
def test_a_layer_of_keras_gets_its_verdict(row, checkout, tmp_path, monkeypatch):
    """Keras's own layers, one of one's own, an instance that is built, and a model."""
    check(row, checkout, tmp_path, monkeypatch)
