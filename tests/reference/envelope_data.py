"""Rows on which sound algorithms are hard pressed, and rows of every regime that cases are drawn from."""

from __future__ import annotations

import numpy as np

from normspec.conformance.cases.regimes import GENERATED, draw_group
from normspec.reference.formats import format_of

from .envelope_judge import Problem

Array = np.ndarray


def adversarial(rng: np.random.Generator, rows: int, n: int, dtype: type) -> Array:
    """Rows that stagnate, cancel, are offset, constant, one-hot, or spread over many binades."""
    z = lambda: rng.standard_normal((rows, n))  # noqa: E731 - a fresh draw each time
    hot = np.zeros((rows, n))
    hot[np.arange(rows), rng.integers(n, size=rows)] = 1 + rng.random(rows)
    flat = np.tile(1 + rng.random((rows, 1)), (1, n))
    kinds = (
        z(),
        1 + 0.01 * z(),
        100 + z(),
        np.exp(3 * z()),
        np.exp(3 * z()) * np.sign(z()),
        np.sort(np.exp(3 * z()), axis=1),
        hot,
        hot + 1e-3 * z(),
        flat,
        flat * np.sign(z()),
        2.0 ** rng.integers(-8, 8, (rows, n)) * (1 + rng.random((rows, n))),
    )
    return np.concatenate(kinds).astype(dtype)


def near_underflow(rng: np.random.Generator, n: int, dtype: type, operator: str, eps: float) -> Problem:
    """
    Rows of numbers most of which underflow on the way, and factors that make what was lost large, or lose themselves.

    Cotangents and parameters are of the order of one, large, small, anything; or large and balanced, so that what they
    multiply cancels.
    """
    least, most = (float(np.log2(float(z))) for z in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max))

    def powers(exponents: Array) -> Array:
        return rng.choice([-1.0, 1.0], exponents.shape) * 2.0**exponents * (1 + rng.random(exponents.shape))

    def factor(shape: tuple[int, ...]) -> Array:
        low, high = ((0.0, 0.0), (0.0, 0.6 * most), (least, 0.0), (least, 0.6 * most), (0.5 * most, 0.5 * most))[
            rng.integers(5)
        ]
        if low == high > 0:
            return rng.permuted(np.resize([-1.0, 1.0], shape), axis=-1) * 2.0**high
        return powers(rng.uniform(low, high, shape))

    close = powers(least + rng.integers(0, 8, (3, n)))
    one_large = close.copy()
    one_large[np.arange(3), rng.integers(n, size=3)] = 1.0
    x = np.concatenate([close, one_large, powers(rng.uniform(least, 0, (3, n))), powers(rng.uniform(least, 6, (3, n)))])
    count = n if operator == "layer_norm" else len(x)
    gamma, beta, g = factor((count,)), factor((count,)), factor(x.shape)
    with np.errstate(over="ignore"):
        return Problem(*(z.astype(dtype) for z in (x, gamma, beta, g)), eps, operator)


def regimes(n: int, eps: float, dtype: type, seed: int, *, exclude: tuple[str, ...] = ()) -> Array:
    """Four groups of each regime that cases are generated from."""
    names = [name for name in GENERATED if name not in exclude]
    groups = [
        draw_group(name, index, n=n, eps=eps, format=format_of(dtype), seed=seed)
        for name in names
        for index in range(4)
    ]
    return np.array(groups).astype(dtype)


def problem(x: Array, operator: str, *, eps: float = 1e-5, seed: int = 0, g: float = 1.0) -> Problem:
    """Rows with parameters and cotangents away from 1 and 0, some of them negative and some zero."""
    rng = np.random.default_rng(seed)
    count = x.shape[1] if operator == "layer_norm" else x.shape[0]
    gamma, beta = rng.standard_normal(count), rng.standard_normal(count) * (rng.random(count) < 0.9)
    cotangent = g * (0.3 + rng.standard_normal(x.shape)) * (rng.random(x.shape) < 0.9)
    return Problem(x, gamma.astype(x.dtype), beta.astype(x.dtype), cotangent.astype(x.dtype), eps, operator)
