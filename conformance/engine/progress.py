"""Progress events of a run."""

from __future__ import annotations

from collections.abc import Callable

import attrs


def weight_of(*, first: bool) -> float:
    """The weight of a binding: of the first of its operator, or of a further one, on which fewer cases run."""
    return 1.0 if first else 0.25


@attrs.frozen
class Progress:
    """How far a run has come."""

    #: Weight of the work that is done, and of all work. `total` is known beforehand and never changes during a run.
    done: float
    total: float
    #: The current work in a few words: target, operator, dtype.
    text: str
    #: Violations of a MUST so far, counted once for each requirement, binding and dtype.
    violations: int = 0
    #: Estimated seconds for the rest; None if there is no estimate yet.
    seconds_left: float | None = None

    @property
    def share(self) -> float:
        """The share that is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


#: Receives each event; it must return at once and never raise.
Listener = Callable[[Progress], None]
