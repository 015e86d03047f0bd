"""Every command of docs/layers.md about Flax and Equinox gives the verdict that stands beside it."""

from __future__ import annotations

import pytest

from ...examples.layers_page import check, rows

ROWS = [one for one in rows() if "flax" in one.name or "equinox" in one.name]


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", [pytest.param(one, id=" ".join(one.command[1:])) for one in ROWS])
def test_a_layer_on_jax_gets_its_verdict(row, checkout, tmp_path, monkeypatch):
    """Layers of Flax in both of its interfaces, of Equinox, and of one's own."""
    check(row, checkout, tmp_path, monkeypatch)
