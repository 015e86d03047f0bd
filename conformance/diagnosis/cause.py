"""A cause: the mistake that the author of a target made, and the violations that it explains."""

from __future__ import annotations

import attrs

from ..judging.verdicts import Result, Verdict


@attrs.frozen
class Cause:
    """One mistake in one operator of a target."""

    target: str
    op: str
    #: The bindings that show it, by name.
    bindings: tuple[str, ...]
    dtypes: tuple[str, ...]
    #: The faults of the library that return what the target returns. There are several if no case tells them apart, and
    #: none if the library has no such mistake: then the sentence describes what was found.
    faults: tuple[str, ...]
    #: The mistake in one sentence; for several faults, one sentence each.
    sentence: str
    #: The right computation, in one sentence.
    remedy: str
    #: The requirement that the mistake is against; for a description, the most telling one that is violated.
    requirement: str
    #: The errata about that requirement.
    errata: tuple[str, ...]
    #: All violated requirements that it explains, that one first.
    explains: tuple[str, ...]
    #: Where it begins to show, in words; empty if that is not known, or if it shows in the smallest cases.
    begins: str = ""
    #: "storage=H2": the convention under which what it explains is not a violation; empty for a mistake.
    convention: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it is a mistake of the library or a convention, and no mere description."""
        return bool(self.faults or self.convention)

    @property
    def name(self) -> str:
        """The first of its faults; empty if no known mistake matches."""
        return self.faults[0] if self.faults else ""

    @property
    def leading(self) -> str:
        """The requirement that stands for it: the others follow from that one."""
        return self.explains[0]

    def is_about(self, result: Result) -> bool:
        """Whether a result is one of its bindings and dtypes."""
        same = (result.target, result.op) == (self.target, self.op)
        return same and result.binding in self.bindings and result.dtype in self.dtypes

    def explains_result(self, result: Result) -> bool:
        """Whether it explains the violation in a result."""
        return result.verdict is Verdict.FAIL and result.requirement in self.explains and self.is_about(result)
