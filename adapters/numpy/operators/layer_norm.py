"""layer_norm on NumPy arrays: the base that variants and faults of it override."""

from __future__ import annotations

from .normalisation import Normalisation


class LayerNorm(Normalisation):
    """Trailing axes as rows, gamma along them."""

    operator = "layer_norm"
