"""rms_norm on NumPy arrays: the base that variants and faults of it override."""

from __future__ import annotations

import numpy as np

from .normalisation import Normalisation
from .rows import Array


class RmsNorm(Normalisation):
    """Trailing axes as rows, divided by their root mean square; no mean is taken out."""

    operator = "rms_norm"

    def mean(self, x: Array) -> Array:
        """Zero: the squares are taken about zero."""
        return np.zeros((len(x), 1), x.dtype)

    def centre(self, z: Array) -> Array:
        """z itself: no mean is subtracted."""
        return z
