"""A normalisation as the storage classes of 16-bit data describe it: computed in float32, rounded on the way."""

from __future__ import annotations

import numpy as np

from .envelope_judge import Array, Problem
from .envelope_moments import two_pass
from .envelope_sums import forwards, number, pairs


def computed(rows: Problem, storage: str) -> dict[str, Array]:
    """y, dx, dgamma and dbeta of rows, as an algorithm of the storage class returns them.

    H1 rounds xhat, its product with gamma, and the two cotangents that meet in dx. H2 rounds the saved mean and
    r, the means of the backward pass, and every partial sum of the parameter gradients too.
    """
    narrow = rows.x.dtype
    stored = lambda z: z.astype(narrow).astype(np.float32)  # noqa: E731 - one rounding to 16 bits
    between = stored if storage != "H0" else lambda z: z
    saved = stored if storage == "H2" else lambda z: z
    x, g = rows.x.astype(np.float32), rows.g.astype(np.float32)
    gamma, beta = (z.astype(np.float32) for z in rows.parameters)
    mean, variance = two_pass(pairs)(x)
    mean, r = saved(mean), saved(number(x, 1) / np.sqrt(variance + number(x, rows.eps)))
    xhat = between((x - mean) * r)
    y = between(gamma * xhat) + beta
    h, n = gamma * g, number(x, x.shape[1])
    precise = (x - mean) * r
    direct = h * r
    through = (saved(pairs(h) / n) + precise * saved(pairs(h * precise) / n)) * r
    dx = between(direct) - between(through)
    terms = {"dgamma": g * precise, "dbeta": g}
    if rows.operator == "layer_norm":
        terms = {name: z.T for name, z in terms.items()}
    total = (lambda z: forwards(z.astype(narrow))) if storage == "H2" else pairs
    sums = {name: total(z)[:, 0] for name, z in terms.items()}
    return {name: z.astype(narrow) for name, z in {"y": y, "dx": dx, **sums}.items()}
