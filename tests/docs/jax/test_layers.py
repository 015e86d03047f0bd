"""Every command of docs/layers.md about Flax and Equinox gives the verdict next to it."""

from __future__ import annotations

import pytest

from ...examples.layers_page import cases, check


@pytest.mark.nightly  # half a minute each: JAX compiles again for each layer
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", cases(lambda row: "flax" in row.name or "equinox" in row.name))
def test_a_layer_on_jax_gets_its_verdict(row, checkout, tmp_path, monkeypatch):
    """Layers of Flax in both of its interfaces, of Equinox, and the user's own."""
    check(row, checkout, tmp_path, monkeypatch)
