"""What a self-test established: which requirement kills which known fault, and that no sound function is accused."""

from __future__ import annotations

import attrs


@attrs.frozen
class Seen:
    """One fault in one dtype, with the requirement that must kill it."""

    dtype: str
    #: After how many cases it was killed; 0 where it was not.
    cases: int = 0
    #: Why it is not looked for there, as was measured; empty where the fault says that it shows.
    unseen: str = ""


@attrs.frozen
class Named:
    """What the diagnosis of a run over all its dtypes says of one fault in one of them."""

    dtype: str
    #: The names of each cause: several where no case tells them apart, none where it is described.
    names: tuple[tuple[str, ...], ...]
    #: The violated requirements that stand as causes, and how many follow from these.
    standing: tuple[str, ...]
    following: int

    def own(self, fault: str) -> bool:
        """Whether it is diagnosed by its own name alone."""
        return self.names == ((fault,),)

    def grouped(self, fault: str) -> tuple[str, ...]:
        """The names that no case tells apart from its own; empty where it is diagnosed otherwise."""
        return next((names for names in self.names if fault in names and len(names) > 1), ())


@attrs.frozen
class FaultRow:
    """One fault, and what the suite said about it."""

    fault: str
    op: str
    #: The requirement that must kill it.
    requirement: str
    #: Every requirement it was found to violate in some dtype, in page order, of those that it was run on.
    killed_by: tuple[str, ...]
    #: The dtypes that it was run in, and those of them in which the requirement that must kill it did not.
    dtypes: tuple[str, ...]
    survived: tuple[str, ...] = ()
    summary: str = ""
    #: Each dtype, where that was asked for: those too in which it is not looked for.
    seen: tuple[Seen, ...] = ()
    #: What the diagnosis says of it in each dtype that it was run in; empty where that was not asked for.
    named: tuple[Named, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether the requirement that must kill it did, in each dtype."""
        return not self.survived


@attrs.frozen
class SoundRow:
    """One sound function, and what the suite said about it."""

    name: str
    op: str
    #: Every MUST it was found to violate or could not be judged on: empty, unless the suite is wrong.
    accused_by: tuple[str, ...] = ()
    summary: str = ""
    #: Its largest error in envelopes, and the MUST and dtype in which it is made; None where none was judged.
    ratio: float | None = None
    largest_in: tuple[str, str] = ("", "")


@attrs.frozen
class Matrix:
    """All rows of one self-test."""

    faults: tuple[FaultRow, ...]
    sound: tuple[SoundRow, ...]
    profile: str
    seed: int
    #: True when each fault was run on all requirements, not only on the one that must kill it.
    whole: bool = False
    #: True when the run was interrupted: the rows that are here were established.
    partial: bool = False
    seconds: float = 0.0

    def survivors(self) -> tuple[FaultRow, ...]:
        """The faults that the requirement which must kill them did not kill in every dtype they were run in."""
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
