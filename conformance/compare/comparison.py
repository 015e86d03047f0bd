"""
The comparison: the sections of the semantic table, and the table for other programs.

The JSON is one object: "schema", "versions", "platform", "dtype", "device", "partial", "seconds", "exit_status",
"left_out" (targets without any of the operators), "differences" (number of rows), and "sections", one per operator:

    op
    columns   target, binding, framework, version of each
    rows      key (stable), title, dtype, differs, and cells in the order of the columns, each with
              text, kind ("measured", "raises", "unsupported", "unclear", "lost") and evidence (the numbers behind it);
              if kind is not "measured", evidence.reason says why

A float that JSON cannot write is the string "nan", "inf" or "-inf".
"""

from __future__ import annotations

import json
import platform

import attrs

from ..reporting.comparison_files import section_in_json, section_in_markdown
from ..reporting.json_values import plain
from ..reporting.versions import of_package, versions
from .table import Cell, Kind, OperatorTable, Row

#: Raised by one when a reader of the old JSON would misread the new one.
SCHEMA = 1


@attrs.frozen
class Comparison:
    """The measurements of some targets, side by side."""

    sections: tuple[OperatorTable, ...]
    #: The dtype of every row that is not about another one.
    dtype: str
    device: str
    #: Targets that have none of the compared operators.
    left_out: tuple[str, ...] = ()
    #: True if the run was interrupted; only the sections measured so far are here.
    partial: bool = False
    seconds: float = 0.0

    @property
    def differences(self) -> tuple[tuple[str, Row], ...]:
        """(operator, row) for each row in which the targets differ."""
        return tuple((section.op, row) for section in self.sections for row in section.rows if row.differs)

    def cell(self, op: str, key: str, target: str) -> Cell:
        """The cell of a target, or of a binding by its name. Raises KeyError."""
        for section in self.sections:
            for place, column in enumerate(section.columns):
                if section.op == op and target in (column.target, column.binding):
                    for row in section.rows:
                        if row.key == key:
                            return row.cells[place]
        raise KeyError((op, key, target))

    @property
    def exit_status(self) -> int:
        """0: measured; 2: nothing was; 3: only in part, because it was interrupted or a target was lost."""
        cells = [cell for section in self.sections for row in section.rows for cell in row.cells]
        if self.partial or any(cell.kind is Kind.LOST for cell in cells):
            return 3
        return 0 if any(cell.kind is Kind.MEASURED for cell in cells) else 2

    def to_json(self) -> str:
        """The whole table as strict JSON, with the evidence of every cell."""
        document = {
            "schema": SCHEMA,
            "versions": {"normspec": of_package("normspec"), **versions()},
            "platform": platform.platform(),
            "dtype": self.dtype,
            "device": self.device,
            "partial": self.partial,
            "seconds": plain(self.seconds),
            "exit_status": self.exit_status,
            "left_out": list(self.left_out),
            "differences": len(self.differences),
            "sections": [section_in_json(section) for section in self.sections],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """A heading and a table for each operator, in GitHub's Markdown; rows that differ are bold."""
        parts = [section_in_markdown(section) for section in self.sections]
        return "\n\n".join(parts) + "\n" if parts else ""
