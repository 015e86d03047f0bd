"""What a run tells about itself while it works."""

from __future__ import annotations

from collections.abc import Callable

import attrs


@attrs.frozen
class Progress:
    """How far a run has come."""

    #: Steps done, and steps known of so far; `total` may grow while the run works.
    done: int
    total: int
    #: What is being checked now, in a few words.
    text: str
    #: Requirements violated so far.
    failing: int = 0


#: Receives each event; it must return at once and never raise.
Listener = Callable[[Progress], None]
