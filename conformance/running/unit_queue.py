"""The queue from which several processes take their units."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import islice

from ...adapters.dtypes import DTYPES
from ...spec.operators import OPERATORS
from .unit import Unit

#: How many of the remaining units a process can choose from: those of all operators in all dtypes.
_IN_VIEW = len(OPERATORS) * len(DTYPES)


class UnitQueue:
    """
    The remaining units; any thread may take one.

    A process keeps to an operator while it can: what is imported or computed for one dtype serves the next.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = iter(units)
        self._in_view: list[Unit] = []
        #: The first process that took a unit of an operator.
        self._process_of: dict[str, int] = {}
        self._taking = threading.Lock()
        self._over = False

    def take(self, process: int) -> Unit | None:
        """The next unit for a process, which has this number; None if none is left."""
        with self._taking:
            self._in_view += islice(self._units, _IN_VIEW - len(self._in_view))
            if self._over or not self._in_view:
                return None
            of_this_seed = [unit for unit in self._in_view if unit.seed == self._in_view[0].seed]
            owners = [self._process_of.get(unit.operator) for unit in of_this_seed]
            # One of an operator of its own, or of one that nobody has; or else the last, which its owner meets last.
            place = next((owners.index(owner) for owner in (process, None) if owner in owners), len(owners) - 1)
            unit = of_this_seed[place]
            self._in_view.remove(unit)
            self._process_of.setdefault(unit.operator, process)
            return unit

    def clear(self) -> None:
        """Drop the remaining units."""
        self._over = True
