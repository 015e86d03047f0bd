"""A reproducer: the script that shows one cause, or one violation without a cause, or why there is none."""

from __future__ import annotations

import attrs


@attrs.frozen
class Reproducer:
    """What became of the script for one mistake."""

    target: str
    op: str
    binding: str
    dtype: str
    #: The requirement whose violation it shows.
    requirement: str
    #: The first fault of the cause that it is about; empty for a violation without a cause.
    fault: str
    #: The file; empty where there is none.
    file: str
    #: Why there is none; empty where there is one.
    why_not: str
