"""The kinds of data on which the reference is compared with arbitrary precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

ROWS = 3


@frozen
class Regime:
    """How to draw x, the other inputs and the cotangents."""

    #: (generator, n) -> x of shape (ROWS, n).
    x: Callable[[np.random.Generator, int], np.ndarray]
    eps: float = 1e-5
    #: Multiply the standard normal gamma, beta and g.
    gamma: float = 1.0
    beta: float = 1.0
    g: float = 1.0
    #: The lengths of a row.
    sizes: tuple[int, ...] = (1, 2, 3, 17, 256)


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw standard normal values."""
    return rng.standard_normal((ROWS, n))


def one_hot(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw rows that are zero except for one value of 1e6."""
    x = np.zeros((ROWS, n))
    x[np.arange(ROWS), rng.integers(n, size=ROWS)] = 1e6
    return x


def beside(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw rows that hold 1e300 and, half of the others, 1e-300."""
    tiny = rng.random((ROWS, n)) < 0.5
    tiny[:, 0] = False
    return normal(rng, n) * np.where(tiny, 1e-300, 1e300)


SHORT = (2, 3, 17)

REGIMES: dict[str, Regime] = {
    "normal": Regime(normal, sizes=(1, 2, 3, 17, 256, 4096)),
    "mean 1e8": Regime(lambda rng, n: 1e8 + normal(rng, n)),
    "mean 1e15": Regime(lambda rng, n: 1e15 + normal(rng, n), sizes=(1, 2, 3, 17, 256, 4096)),
    "variance as eps": Regime(lambda rng, n: 3e-3 * normal(rng, n)),
    "variance 1e-12": Regime(lambda rng, n: 1 + 1e-6 * normal(rng, n), eps=1e-12),
    "subnormal": Regime(lambda rng, n: 1e-310 * normal(rng, n)),
    "subnormal, eps 0": Regime(lambda rng, n: 1e-310 * normal(rng, n), eps=0.0, sizes=SHORT),
    "subnormal y": Regime(normal, gamma=1e-310, beta=1e-310, sizes=(1, 2, 3, 17, 256)),
    "huge": Regime(lambda rng, n: 1e300 * normal(rng, n)),
    "huge, gamma tiny": Regime(lambda rng, n: 1e300 * normal(rng, n), gamma=1e-300, beta=1e-300, g=1e300),
    "tiny, gamma huge": Regime(lambda rng, n: 1e-300 * normal(rng, n), gamma=1e300, beta=1.0, eps=1e-300),
    "g subnormal": Regime(normal, g=1e-320),
    "g huge, gamma huge": Regime(lambda rng, n: 1e200 * normal(rng, n), gamma=1e200, g=1e200, eps=1e-3),
    "huge beside tiny": Regime(beside, sizes=(2, 3, 17)),
    "one-hot": Regime(one_hot),
    "lognormal": Regime(lambda rng, n: rng.lognormal(0, 20, (ROWS, n)), sizes=(1, 2, 3, 17, 256, 4096)),
    "1e160, n = 2": Regime(lambda rng, n: 1e160 * normal(rng, n), eps=1e-12, sizes=(2,)),
    "constant": Regime(lambda rng, n: normal(rng, 1) + np.zeros((ROWS, n))),
    "gamma 0": Regime(normal, gamma=0.0),
    "eps 0": Regime(normal, eps=0.0, sizes=(2, 3, 17, 256)),
    "eps 5e-324": Regime(lambda rng, n: 1e-162 * normal(rng, n), eps=5e-324, sizes=(1, 2, 3, 17)),
    "eps 1e300": Regime(lambda rng, n: 1e150 * normal(rng, n), eps=1e300),
    "long": Regime(normal, sizes=(65536,)),
}

#: Every regime at every size.
POINTS = [(name, n) for name, regime in REGIMES.items() for n in regime.sizes]


@frozen
class Data:
    """One draw: x and g of shape (ROWS, n), gamma, beta of the given shape, the running statistics a row each."""

    x: np.ndarray
    gamma: np.ndarray
    beta: np.ndarray
    g: np.ndarray
    running_mean: np.ndarray
    running_var: np.ndarray
    eps: float


def draw(name: str, n: int, *, columns: bool, rows: int = ROWS) -> Data:
    """Draw a regime's data, the same on every machine; gamma and beta have one value per column, or one per row."""
    regime = REGIMES[name]
    rng = np.random.Generator(np.random.Philox(key=[sum(map(ord, name)), n]))
    shape = (n,) if columns else (rows,)
    x = regime.x(rng, n)[:rows]
    return Data(
        x=x,
        gamma=regime.gamma * rng.standard_normal(shape),
        beta=regime.beta * rng.standard_normal(shape),
        g=regime.g * rng.standard_normal((rows, n)),
        running_mean=x[:, 0] / 2 + x[:, -1] / 2,
        # As large as x squared, or as float64 allows.
        running_var=np.ldexp(rng.random(rows), min(2 * int(np.frexp(abs(x).max())[1]), 1000)),
        eps=regime.eps,
    )
