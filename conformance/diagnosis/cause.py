"""A cause: what the author of a target did wrongly, and which violations that explains."""

from __future__ import annotations

import attrs

from ..judging.verdicts import Result, Verdict


@attrs.frozen
class Cause:
    """One mistake in one operator of a target."""

    target: str
    op: str
    #: The spellings of the operator that show it.
    bindings: tuple[str, ...]
    dtypes: tuple[str, ...]
    #: The faults of the library that return what the target returns; several where no case tells them apart, and none
    #: where the library has no such mistake: then the sentence describes what was found.
    faults: tuple[str, ...]
    #: What is wrong, in one sentence; of several faults, one sentence each.
    sentence: str
    #: What is right, in one sentence.
    remedy: str
    #: The requirement that the mistake is one against; of a description, the most telling that is violated.
    requirement: str
    #: The errata that are about that requirement.
    errata: tuple[str, ...]
    #: All the violated requirements that it explains, that one first.
    explains: tuple[str, ...]
    #: From where on it shows, in words; empty where that is not known, or it shows in the smallest cases.
    begins: str = ""

    @property
    def name(self) -> str:
        """The first of its faults; empty where no known mistake matches."""
        return self.faults[0] if self.faults else ""

    @property
    def leading(self) -> str:
        """The one that stands for it: the others follow from that."""
        return self.explains[0]

    def explains_result(self, result: Result) -> bool:
        """Whether the result is a violation that it explains."""
        return (
            (result.target, result.op) == (self.target, self.op)
            and result.verdict is Verdict.FAIL
            and result.binding in self.bindings
            and result.dtype in self.dtypes
            and result.requirement in self.explains
        )
