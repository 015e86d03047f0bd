"""What judging one result against its envelope established."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np


@attrs.frozen
class Worst:
    """The element that is farthest outside, or uses most of its bound."""

    index: tuple[int, ...]
    expected: float
    got: float
    bound: float
    #: |got - expected| / bound.
    ratio: float


def _found(worst: Worst | Callable[[], Worst | None] | None) -> Worst | None:
    return worst() if callable(worst) else worst


@attrs.frozen(eq=False)
class Judgement:
    """One result of one call, judged element by element."""

    op: str
    #: "y", "dx", "dgamma", "dbeta", "new_running_mean" or "new_running_var".
    name: str
    shape: tuple[int, ...]
    #: The elements that were judged; those that were not lie where nothing is promised (R1 to R6), or in groups that
    #: the sample left out.
    judged: int
    outside: int
    #: The worst element, or a function that finds it: most assertions hold, and nobody asks.
    _worst: Worst | Callable[[], Worst | None] | None = attrs.field(repr=lambda worst: repr(_found(worst)))
    #: How many groups of how many were looked at, and the seed of the sample.
    groups: int
    of_groups: int
    seed: int = 0
    #: The groups that have elements outside, and the places within a group where there are some; of a parameter's
    #: gradient and of a statistic only the places.
    groups_outside: np.ndarray = attrs.field(factory=lambda: np.zeros(0, int))
    places_outside: np.ndarray = attrs.field(factory=lambda: np.zeros(0, int))

    @property
    def holds(self) -> bool:
        """Whether no element is outside."""
        return self.outside == 0

    @property
    def worst(self) -> Worst | None:
        """The worst element; None where nothing was judged."""
        return _found(self._worst)

    @property
    def ratio(self) -> float:
        """The worst error in units of its bound; 0 where nothing was judged."""
        worst = self.worst
        return 0.0 if worst is None else worst.ratio


@attrs.frozen(eq=False)
class Envelope:
    """The exact value of a result and the largest error that a sound algorithm can make in it, element by element."""

    #: float64, of the result's shape: rounded once where any of the data is float64, and otherwise off by at most 2^-29
    #: of the bound.
    exact: np.ndarray
    #: float64; infinite where nothing is promised.
    bound: np.ndarray
