"""The failed cases that `--replay` did not judge again, and why."""

from __future__ import annotations

import attrs


@attrs.frozen
class LeftOut:
    """Failed cases that a target was asked to be judged on, and was not, for one reason."""

    target: str
    #: How many cases, and how many the target was asked about in all.
    cases: int
    of: int
    #: Why, as the end of a sentence: "numpy has no float16".
    why: str
