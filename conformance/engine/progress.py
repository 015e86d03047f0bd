"""What a run tells about itself while it works."""

from __future__ import annotations

from collections.abc import Callable

import attrs

#: What the first binding of an operator weighs, and a further one, which is put to fewer cases.
FIRST, FURTHER = 1.0, 0.25


@attrs.frozen
class Progress:
    """How far a run has come."""

    #: How much is done, and how much there is: known beforehand, so that `total` never changes while a run works.
    done: float
    total: float
    #: What is being checked now, in a few words: target, operator, dtype.
    text: str
    #: Violations of a MUST so far: one for each requirement, binding and dtype.
    violations: int = 0
    #: The seconds that the rest may take; None where that cannot be said yet.
    seconds_left: float | None = None

    @property
    def share(self) -> float:
        """The share that is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


#: Receives each event; it must return at once and never raise.
Listener = Callable[[Progress], None]
