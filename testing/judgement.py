"""The outcome of judging one result against its envelope."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np


@attrs.frozen
class Worst:
    """The element that is farthest outside, or else the one that uses most of its bound."""

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
    #: The number of judged elements. The others lie where nothing is promised (R1 to R6), or in groups that are not in
    #: the sample.
    judged: int
    outside: int
    #: The worst element, or a function that finds it: most assertions hold, and nobody asks.
    _worst: Worst | Callable[[], Worst | None] | None = attrs.field(repr=lambda worst: repr(_found(worst)))
    #: The number of groups judged, the number of all groups, and the seed of the sample.
    groups: int
    of_groups: int
    seed: int = 0
    #: The groups that have elements outside, and the positions within a group where some group has one. Results with
    #: one value per parameter or channel have positions only.
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
    """The exact values of a result and the largest error that a sound algorithm can make in each element."""

    #: float64, of the result's shape: rounded once if any of the data is float64, otherwise off by at most 2^-29 of the
    #: bound.
    exact: np.ndarray
    #: float64; infinite where nothing is promised.
    bound: np.ndarray
