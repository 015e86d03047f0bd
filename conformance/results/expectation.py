"""What became of an expected failure in a run, as a report has it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Place:
    """Where a requirement was expected to fail, and does not."""

    op: str
    binding: str
    requirement: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.requirement} in {self.dtype}"


@attrs.frozen
class Expectation:
    """An expected failure of one target, and what a run made of it."""

    target: str
    #: What it is about, and why it is expected: as it was written.
    requirement: str
    reason: str
    operator: str = ""
    binding: str = ""
    dtypes: tuple[str, ...] = ()
    link: str = ""
    until: str = ""
    #: How many results violate what it says, and are not counted as failures for that.
    shown: int = 0
    #: Where it does not fail.
    passes: tuple[Place, ...] = ()
    #: What is wrong with it; empty where it is met.
    wrong: str = ""
