"""Values kept in a narrower dtype: what a normalisation computes on the way, and rounds before it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np

from ....reference.formats import FORMATS, Format
from ....spec.operators import OPERATORS
from .formula_steps import FORMULAS, Array, FormulaSteps
from .observing import ObservedResult
from .pattern import listed
from .relation import EXTRA_ROUNDINGS, LinearRelation

_NARROW = ("float16", "bfloat16")
#: What may be rounded, together, and its words.
_KEPT: tuple[tuple[str, ...], ...] = (("xhat",), ("r",), ("mean",), ("mean", "r"))
_WORDS = {"xhat": "xhat", "r": "1 / sqrt(var + eps)", "mean": "the mean"}


def kept_values(operator: str, name: str) -> Iterator[LinearRelation]:
    """y, or a gradient, computed from statistics or normalised values that were rounded to a narrower dtype."""
    record = OPERATORS[operator]
    if not record.normalises or record.composed or name not in _MOVED:
        return
    for names in _KEPT if record.centred else _KEPT[:2]:
        for dtype in _NARROW:
            words = f"what the formula gives with {listed([_WORDS[one] for one in names])} rounded to {dtype}"
            pair = _Pair(name, names, FORMATS[dtype])
            yield LinearRelation(words, pair.base, rounded=pair.apart)


@attrs.frozen
class _Pair:
    """
    A result of rounded values: of those a little smaller than the exact ones, and of those a little larger.

    The two agree unless a value lies next to where rounding goes the other way: there, roundings before it decide.
    """

    name: str
    kept: Sequence[str]
    format: Format

    def base(self, one: ObservedResult) -> Array:
        """The result of the smaller values; what was returned where only the larger ones overflow."""
        lower, upper = (FORMULAS[self.name](self._steps(one, sign)) for sign in (-1.0, 1.0))
        return np.where(np.isfinite(upper) | ~np.isfinite(lower), lower, one.got)

    def apart(self, one: ObservedResult) -> Array:
        """How far the result may be from that, as some of the values are the larger ones."""
        lower, upper = (self._steps(one, sign) for sign in (-1.0, 1.0))
        moved = np.abs(upper.xhat - lower.xhat)
        whole = np.abs(FORMULAS[self.name](upper) - FORMULAS[self.name](lower))
        return whole + _MOVED[self.name](lower, moved)

    def _steps(self, one: ObservedResult, sign: float) -> _Rounded:
        return _Rounded(one.case, self.kept, self.format, sign * one.values.unit)


@attrs.frozen(eq=False, slots=False)
class _Rounded(FormulaSteps):
    """The steps of the formula with some of them rounded."""

    kept: Sequence[str]
    format: Format
    #: The roundoff of what is computed before, with the sign in which it counts.
    unit: float

    @cached_property
    def _exact(self) -> FormulaSteps:
        return FormulaSteps.of(self.case)

    @cached_property
    def _error(self) -> Array:
        """By how much a value of its group may be off, relative to 1, before it is rounded."""
        exact = self._exact
        return self.unit * (EXTRA_ROUNDINGS + np.sqrt(self.n)) * (1 + np.abs(exact.mean) * exact.r)

    def _narrowed(self, value: Array, error: Array) -> Array:
        return (value + error).astype(self.format.dtype).astype(np.float64)

    @cached_property
    def variance(self) -> Array:
        """The variance, about the exact mean."""
        return self._exact.variance

    @cached_property
    def mean(self) -> Array:
        """The mean, rounded if it is kept."""
        exact = self._exact
        return self._narrowed(exact.mean, self._error / exact.r) if "mean" in self.kept else exact.mean

    @cached_property
    def r(self) -> Array:
        """The reciprocal root, rounded if it is kept."""
        exact = self._exact
        return self._narrowed(exact.r, self._error * exact.r) if "r" in self.kept else exact.r

    @cached_property
    def xhat(self) -> Array:
        """The normalised values, rounded if they are kept."""
        rows = (self.data - self.mean) * self.r
        return self.back(self._narrowed(rows, self._error * (1 + np.abs(rows))) if "xhat" in self.kept else rows)


def _moved_dx(steps: FormulaSteps, moved: Array) -> Array:
    """By how much dx moves at most if some values of xhat do."""
    h, xhat, moved = np.abs(steps.rows(steps.gamma * steps.g)), np.abs(steps.rows(steps.xhat)), steps.rows(moved)
    along, change = (np.mean(h * one, axis=1, keepdims=True) for one in (xhat, moved))
    return steps.back(steps.r * (moved * along + (xhat + moved) * change))


#: By how much each result moves at most if values of xhat move.
_MOVED: dict[str, Callable[[FormulaSteps, Array], Array]] = {
    "y": lambda steps, moved: np.abs(steps.gamma) * moved,
    "dx": _moved_dx,
    "dgamma": lambda steps, moved: steps.total(np.abs(steps.g) * moved),
}
