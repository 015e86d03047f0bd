"""The progress of a run: the share of its units that is done, for any executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine.progress import Listener, Progress, weight_of
from .unit import Unit

#: Share that must be done before the remaining time can be estimated.
_MIN_SHARE = 0.02


class Share:
    """
    Adds up the progress of all units into a share of a total that is known beforehand.

    Units may be judged at the same time, and several threads may report progress.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        subjects: Sequence[Mapping[str, Any]],
        listener: Listener,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._weights = {unit: _weight(unit, subjects) for unit in units}
        self._total = sum(self._weights.values())
        self._listener, self._clock, self._started = listener, clock, clock()
        #: The last progress event of each unit.
        self._last: dict[Unit, Progress] = {}
        self._lock = threading.Lock()

    def __call__(self, unit: Unit, event: Progress) -> None:
        """Receive the progress of a unit, and report that of all units."""
        with self._lock:
            self._last[unit] = event
            done = sum(self._weights[one] * told.share for one, told in self._last.items())
            self._tell(done, event.text)

    def looking_for_causes(self) -> None:
        """Report that all units are done, and that the search begins for causes, and for declarations that excuse."""
        with self._lock:
            self._tell(self._total, "looking for causes")

    def _tell(self, done: float, text: str) -> None:
        passed = self._clock() - self._started
        share = done / self._total if self._total else 1.0
        left = passed * (1 - share) / share if share > _MIN_SHARE else None
        self._listener(Progress(done, self._total, text, sum(one.violations for one in self._last.values()), left))


def _weight(unit: Unit, subjects: Sequence[Mapping[str, Any]]) -> float:
    """The weight of a unit: that of the first binding of each target, and of its further ones."""
    counts = [sum(one["target"] == name and one["op"] == unit.operator for one in subjects) for name in unit.targets]
    return sum(weight_of(first=not place) for count in counts for place in range(count))
