"""The table as values: what was measured, of what, and where the targets differ."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs


class Kind(str, enum.Enum):
    """What a cell holds."""

    #: What the target does, established by calls of it.
    MEASURED = "measured"
    #: The target raised, or returned something that is no result: this too is what it does.
    RAISES = "raises"
    #: The target lacks what the row is about, or leaves it to the caller; the reason says which.
    UNSUPPORTED = "unsupported"
    #: The calls answered, and what they answered does not tell; the reason says why.
    UNCLEAR = "unclear"
    #: The target's process died, or was stopped at a limit.
    LOST = "lost"


#: The kinds that are something a target does, and by which two targets can differ.
BEHAVIOUR = (Kind.MEASURED, Kind.RAISES)


#: What a cell says of a choice that the target leaves to its caller.
BY_CALLER = "given by the caller"


@attrs.frozen
class Cell:
    """What one binding does in one respect."""

    #: A few words; equal words mean equal behaviour.
    text: str
    kind: Kind = Kind.MEASURED
    #: The numbers behind it, in JSON's own types, and "reason" where it could not be measured.
    evidence: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Column:
    """One binding of one target."""

    target: str
    binding: str
    framework: str
    version: str

    def label(self, *, with_binding: bool) -> str:
        """The target's name; where several bindings of it stand side by side, the binding's."""
        return self.binding if with_binding else self.target


@attrs.frozen
class Row:
    """One respect in which implementations differ, and what each column does."""

    key: str
    title: str
    #: The dtype of the data it was measured on.
    dtype: str
    #: One for each column of the section.
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether two of the columns do something different; what could not be measured differs from nothing."""
        return len({cell.text for cell in self.cells if cell.kind in BEHAVIOUR}) > 1


@attrs.frozen
class Section:
    """The rows about one operator."""

    op: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def with_bindings(self) -> bool:
        """Whether a target has more than one column, so that its name alone does not say which."""
        return len({column.target for column in self.columns}) < len(self.columns)
