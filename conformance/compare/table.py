"""The table as values: what was measured, on which target, and where the targets differ."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs


class Kind(str, enum.Enum):
    """The kinds of cells."""

    #: The target's behaviour, established by calls.
    MEASURED = "measured"
    #: The target raised, or returned something that is not a result. This too is behaviour.
    RAISES = "raises"
    #: The target lacks what the row is about, or leaves it to the caller; the reason says which.
    UNSUPPORTED = "unsupported"
    #: The calls answered, but the answers do not decide it; the reason says why.
    UNCLEAR = "unclear"
    #: The target's process died, or was stopped at a limit.
    LOST = "lost"


#: The kinds that are behaviour, so that two targets can differ in them.
BEHAVIOUR = (Kind.MEASURED, Kind.RAISES)


#: The text of a cell about a choice that the target leaves to its caller.
BY_CALLER = "given by the caller"


@attrs.frozen
class Cell:
    """The behaviour of one binding in one respect."""

    #: A few words; equal words mean equal behaviour.
    text: str
    kind: Kind = Kind.MEASURED
    #: The numbers behind it, in JSON's own types, and "reason" if it could not be measured.
    evidence: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Column:
    """One binding of one target."""

    target: str
    binding: str
    framework: str
    version: str

    def label(self, *, with_binding: bool) -> str:
        """The target's name; the binding's if several bindings of the target stand side by side."""
        return self.binding if with_binding else self.target


@attrs.frozen
class Row:
    """One respect in which implementations differ, with the behaviour of each column."""

    key: str
    title: str
    #: The dtype of the data it was measured on.
    dtype: str
    #: One for each column of the section.
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether two columns behave differently. A cell that could not be measured differs from nothing."""
        return len({cell.text for cell in self.cells if cell.kind in BEHAVIOUR}) > 1

    @property
    def is_compared(self) -> bool:
        """Whether two columns, or the only one, show a behaviour."""
        return sum(cell.kind in BEHAVIOUR for cell in self.cells) >= min(2, len(self.cells))


@attrs.frozen
class OperatorTable:
    """The rows about one operator."""

    op: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def with_bindings(self) -> bool:
        """Whether a target has more than one column, so that its name is ambiguous."""
        return len({column.target for column in self.columns}) < len(self.columns)
