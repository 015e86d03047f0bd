"""Results of a self-test: which requirement kills which known fault, and whether a sound function is accused."""

from __future__ import annotations

import attrs


@attrs.frozen
class KillInDtype:
    """One fault in one dtype, with the requirement that must kill it."""

    dtype: str
    #: Number of cases after which it was killed; 0 if it was not.
    cases: int = 0
    #: Measured reason why the fault does not declare this dtype; empty if it declares it.
    unseen: str = ""


@attrs.frozen
class DiagnosisInDtype:
    """The diagnosis of one fault in one dtype, from a run over all its dtypes."""

    dtype: str
    #: The fault names of each cause: several if no case tells them apart, none if the cause is only described.
    names: tuple[tuple[str, ...], ...]
    #: The violated requirements that stand as causes, and the number of those that follow from them.
    standing: tuple[str, ...]
    following: int

    def own(self, fault: str) -> bool:
        """Whether the diagnosis is the fault's own name alone."""
        return self.names == ((fault,),)

    def grouped(self, fault: str) -> tuple[str, ...]:
        """The group of names that no case tells apart, if it contains the fault's own; otherwise empty."""
        return next((names for names in self.names if fault in names and len(names) > 1), ())


@attrs.frozen
class FaultRow:
    """The results of the suite on one fault."""

    fault: str
    op: str
    #: The requirement that must kill it.
    requirement: str
    #: The requirements that it violated in some dtype, in page order, of those that it was run on.
    killed_by: tuple[str, ...]
    #: The dtypes that it was run in, and those in which the requirement that must kill it did not.
    dtypes: tuple[str, ...]
    survived: tuple[str, ...] = ()
    summary: str = ""
    #: One entry for each dtype, undeclared ones included; empty unless asked for.
    seen: tuple[KillInDtype, ...] = ()
    #: The diagnosis in each dtype that it was run in; empty unless asked for.
    named: tuple[DiagnosisInDtype, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether the requirement that must kill it did so in each dtype."""
        return not self.survived


@attrs.frozen
class SoundRow:
    """The results of the suite on one sound function."""

    name: str
    op: str
    #: Every MUST that it violated or could not be judged on; empty unless the suite is wrong.
    accused_by: tuple[str, ...] = ()
    summary: str = ""
    #: Its largest error / envelope, and the MUST and dtype where it occurred; None if none was judged.
    ratio: float | None = None
    largest_in: tuple[str, str] = ("", "")


@attrs.frozen
class Matrix:
    """All rows of one self-test."""

    faults: tuple[FaultRow, ...]
    sound: tuple[SoundRow, ...]
    profile: str
    seed: int
    #: Whether each fault was run on all requirements, not only on the one that must kill it.
    whole: bool = False
    #: Whether the run was interrupted, so that some rows are missing.
    partial: bool = False
    seconds: float = 0.0

    def survivors(self) -> tuple[FaultRow, ...]:
        """The faults that survived, in some dtype, the requirement that must kill them."""
        return tuple(row for row in self.faults if not row.killed)

    def accused(self) -> tuple[SoundRow, ...]:
        """The sound functions that were accused."""
        return tuple(row for row in self.sound if row.accused_by)

    @property
    def proven(self) -> bool:
        """Whether every fault was killed, nothing sound was accused, and neither list is empty."""
        ran = bool(self.faults) and bool(self.sound)
        return ran and not self.partial and not self.survivors() and not self.accused()

    @property
    def exit_status(self) -> int:
        """0 proven, 1 a fault survived or a sound function was accused, 2 nothing ran, 3 interrupted."""
        if self.partial:
            return 3
        if self.survivors() or self.accused():
            return 1
        return 0 if self.proven else 2
