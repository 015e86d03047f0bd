"""The gain: what becomes of what is handed over for gamma."""

from __future__ import annotations

import numpy as np

from ...spec.operators import OPERATORS
from .bench import GAINS, Bench
from .probe import NORMALISATIONS, probe
from .table import Cell

#: The factor of y by what is handed over for gamma.
_GAINS = {
    "gamma": lambda w: w,
    "1 + gamma": lambda w: 1 + w,
    "the magnitude of gamma": abs,
    "not used": lambda w: 1.0,
}


@probe("gain", "gain", (name for name in NORMALISATIONS if OPERATORS[name].has_gain))
def gain(bench: Bench) -> Cell:
    """y for several gains, each the same number throughout; where 1 is added, other rows hand over gamma - 1."""
    found = bench.gained
    evidence = {"gamma": list(GAINS), "over_that_of_1": list(found)}
    for name, factor in _GAINS.items():
        if np.allclose(found, [factor(w) / factor(1.0) for w in GAINS], rtol=2.0**-6, atol=0):
            return Cell(name, evidence=evidence)
    return Cell("another function of gamma", evidence=evidence)
