"""A reproducer: the script for one cause, or for one violation without a cause, or why there is none."""

from __future__ import annotations

import attrs


@attrs.frozen
class Reproducer:
    """The outcome of writing a script for one mistake."""

    target: str
    op: str
    binding: str
    dtype: str
    #: The requirement whose violation it shows.
    requirement: str
    #: The first fault of the cause; empty for a violation without a cause.
    fault: str
    #: The file; empty if there is none.
    file: str
    #: Why there is none; empty if there is one.
    why_not: str
