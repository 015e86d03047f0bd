"""Expected failures in a report, and whether they occurred."""

from __future__ import annotations

import attrs


@attrs.frozen
class UnexpectedPass:
    """A requirement that was expected to fail in one dtype of a binding, and passes."""

    op: str
    binding: str
    requirement: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.requirement} in {self.dtype}"


@attrs.frozen
class Expectation:
    """An expected failure of one target, and its outcome in a run."""

    target: str
    #: The entry as the user wrote it: the requirement, the reason, and the limits.
    requirement: str
    reason: str
    operator: str = ""
    binding: str = ""
    dtypes: tuple[str, ...] = ()
    link: str = ""
    until: str = ""
    #: Number of results that fail as expected and so do not count as failures.
    shown: int = 0
    #: The places where the requirement does not fail.
    passes: tuple[UnexpectedPass, ...] = ()
    #: What is wrong with the entry; empty if the failure occurred as expected.
    wrong: str = ""
