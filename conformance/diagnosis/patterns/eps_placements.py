"""Placements of eps: where a normalisation added it to the spread, or what it used in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np

from ....reference.formats import FORMATS
from .formula_steps import Array, broadcast

#: A quantity of each group, given its spread and eps.
_Quantity = Callable[[Array, float], "Array | float"]


@attrs.frozen
class EpsPlacement:
    """Where eps is added to a spread: transformed(V) = base + k slope, where V is the value under the root."""

    #: What a group is divided by, given k in words; the spread is called var.
    words: Callable[[str], str]
    base: _Quantity
    slope: _Quantity
    #: The k that is right if the spread is right; infinite if none is.
    right: float = np.inf
    transformed: Callable[[Array], Array] = lambda value: value
    #: The inverse of ``transformed``.
    back: Callable[[Array], Array] = lambda value: value
    #: For a limit: V is the larger (1) or the smaller (-1) of base and k slope, plus ``added``.
    limit: int = 0
    added: _Quantity = lambda spread, eps: 0.0
    #: The one k that is meant, if any other would be a second mistake in the same term.
    only: float | None = None

    def of_groups(self, spread: Array, eps: float) -> tuple[Array, Array]:
        """Base and slope of each group."""
        base, slope = (broadcast(one(spread, eps), spread.shape) for one in (self.base, self.slope))
        return base, slope

    def root(self, spread: Array, eps: float, number: float) -> Array:
        """The root that each group was divided by, with this k."""
        base, slope = self.of_groups(spread, eps)
        if self.limit:
            limited = (np.maximum if self.limit > 0 else np.minimum)(base, number * slope)
            return np.sqrt(limited + self.added(spread, eps))
        return np.sqrt(self.back(base + number * slope))


def _multiple(k: str, of: str) -> str:
    if k == "1":
        return of
    return f"{of} / {k[2:]}" if k.startswith("1/") else f"{k} {of}"


def _spread(q: Array, eps: float) -> Array:
    return q


def _eps(q: Array, eps: float) -> float:
    return eps


def _sum(q: Array, eps: float) -> Array:
    return q + eps


def _zero(q: Array, eps: float) -> float:
    return 0.0


def _one(q: Array, eps: float) -> float:
    return 1.0


def _outside(words: Callable[[str], str], slope: _Quantity) -> EpsPlacement:
    """A multiple of a number is added to the root."""
    return EpsPlacement(words, lambda q, eps: np.sqrt(q), slope, transformed=np.sqrt, back=np.square)


def _limits() -> Iterator[EpsPlacement]:
    """Limits that keep the variance, or eps, from falling or from growing."""
    for limit, word in ((1, "max"), (-1, "min")):
        for words, base, slope, added in (
            (lambda k, w=word: f"sqrt({w}(var, {_multiple(k, 'eps')}))", _spread, _eps, _zero),
            (lambda k, w=word: f"sqrt({w}(var + eps, {k}))", _sum, _one, _zero),
            (lambda k, w=word: f"sqrt({w}(var, {k}) + eps)", _spread, _one, _eps),
            (lambda k, w=word: f"sqrt(var + {w}(eps, {k}))", _eps, _one, _spread),
        ):
            yield EpsPlacement(words, base, slope, limit=limit, added=added)


#: The placements, the right one first.
EPS_PLACEMENTS: tuple[EpsPlacement, ...] = (
    EpsPlacement(lambda k: f"sqrt(var + {_multiple(k, 'eps')})" if k != "0" else "sqrt(var)", _spread, _eps, 1.0),
    EpsPlacement(lambda k: f"sqrt({_multiple(k, 'var')} + eps)", _eps, _spread, 1.0),
    EpsPlacement(lambda k: f"sqrt(var + {k})", _spread, _one),
    EpsPlacement(lambda k: f"sqrt({k} (var + eps))", _zero, _sum, 1.0),
    _outside(lambda k: f"sqrt(var) + {_multiple(k, 'eps')}", _eps),
    _outside(lambda k: f"sqrt(var) + {_multiple(k, 'sqrt(eps)')}", lambda q, eps: np.sqrt(eps)),
    _outside(lambda k: f"sqrt(var) + {k}", _one),
    EpsPlacement(
        lambda k: f"sqrt(var + eps)^{f'({k})' if '/' in k else k}",
        _zero,
        lambda q, eps: np.log(q + eps),
        1.0,
        transformed=np.log,
        back=np.exp,
    ),
    *_limits(),
    *(
        EpsPlacement(
            lambda k, words=words: f"sqrt(var + {_multiple(k, words)})", _spread, lambda q, eps, power=power: eps**power
        )
        for words, power in (("eps^2", 2), ("eps^3", 3), ("sqrt(eps)", 0.5))
    ),
    *(
        EpsPlacement(
            lambda k, dtype=dtype: f"sqrt(var + {_multiple(k, f'eps rounded to {dtype}')})",
            _spread,
            lambda q, eps, dtype=dtype: float(FORMATS[dtype].dtype.type(eps)),
            only=1.0,
        )
        for dtype in ("float16", "bfloat16")
    ),
)
