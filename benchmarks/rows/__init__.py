"""The measurements: one table row each, by name. Nothing here imports normspec before a row runs."""

from __future__ import annotations

from rows import checks, faults, growth, machines, memory, reference
from rows.row import Row

#: Every row, in print order.
ROWS: dict[str, Row] = {
    row.name: row for row in (*checks.ROWS, *faults.ROWS, *reference.ROWS, *memory.ROWS, *growth.ROWS, *machines.ROWS)
}

__all__ = ["ROWS", "Row"]
