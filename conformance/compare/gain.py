"""The gain: what the target makes of gamma."""

from __future__ import annotations

import numpy as np

from ...spec.operators import OPERATORS
from .bench import GAINS, PATTERN, Bench
from .probe import NORMALISATIONS, probe
from .table import Cell

#: The factor of y as a function of gamma, by name.
_GAINS = {
    "gamma": lambda w: w,
    "1 + gamma": lambda w: 1 + w,
    "the magnitude of gamma": abs,
    "not used": lambda w: 1.0,
}


@probe("gain", "gain", (name for name in NORMALISATIONS if OPERATORS[name].has_gain))
def gain(bench: Bench) -> Cell:
    """
    Compares y for several gains, each the same number throughout.

    If the target adds 1 to gamma, other rows pass gamma - 1.
    """
    if not bench.takes("gamma"):
        return Cell("no gamma")
    found = bench.gained
    evidence = {"gamma": list(GAINS), "over_that_of_1": list(found)}
    for name, factor in _GAINS.items():
        if np.allclose(found, [factor(w) / factor(1.0) for w in GAINS], rtol=2.0**-6, atol=0):
            return Cell(name, evidence=evidence)
    return Cell("another function of gamma", evidence=evidence)


#: Values of gamma and beta for which every way to apply them gives another y.
_GAMMA, _BETA = 2.0, 3.0

#: What xhat becomes.
_MAPS = {
    "gamma xhat + beta": lambda z: _GAMMA * z + _BETA,
    "gamma (xhat + beta)": lambda z: _GAMMA * (z + _BETA),
    "gamma xhat - beta": lambda z: _GAMMA * z - _BETA,
    "gamma xhat, beta not used": lambda z: _GAMMA * z,
    "xhat + beta, gamma not used": lambda z: z + _BETA,
    "xhat, neither used": lambda z: z,
}


#: The map of what takes no gamma, no beta or neither.
_WITHOUT = {("gamma",): "xhat + beta", ("beta",): "gamma xhat", ("gamma", "beta"): "xhat"}


@probe("affine", "affine map", (name for name in NORMALISATIONS if "beta" in OPERATORS[name].arguments))
def affine_map(bench: Bench) -> Cell:
    """Compares y of one group for a gamma of 2 and a beta of 3 with that for 1 and 0."""
    lacking = [name for name in ("gamma", "beta") if not bench.takes(name)]
    if lacking:
        return Cell(", ".join((_WITHOUT[tuple(lacking)], *(f"no {name}" for name in lacking))))
    z = bench.call([PATTERN], eps=1.0).group
    y = bench.call([PATTERN], eps=1.0, gamma=_GAMMA, beta=_BETA).group
    evidence = {"xhat": [float(v) for v in z], "y": [float(v) for v in y]}
    for name, made in _MAPS.items():
        if np.allclose(y, made(z), rtol=2.0**-6, atol=2.0**-6):
            return Cell(name, evidence=evidence)
    return Cell("another function of gamma and beta", evidence=evidence)
