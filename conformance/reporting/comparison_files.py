"""One operator's section of the semantic table, as JSON and as GitHub's Markdown."""

from __future__ import annotations

from typing import Any

from ..compare.table import BEHAVIOUR, Cell, OperatorTable, Row
from .json_values import plain
from .markdown import escaped


def section_in_json(section: OperatorTable) -> dict[str, Any]:
    """One operator's table as a JSON object."""
    columns = [
        {"target": c.target, "binding": c.binding, "framework": c.framework, "version": c.version}
        for c in section.columns
    ]
    return {"op": section.op, "columns": columns, "rows": [_row(row) for row in section.rows]}


def _row(row: Row) -> dict[str, Any]:
    cells = [{"text": c.text, "kind": c.kind.value, "evidence": plain(c.evidence)} for c in row.cells]
    return {"key": row.key, "title": row.title, "dtype": row.dtype, "differs": row.differs, "cells": cells}


def section_in_markdown(section: OperatorTable) -> str:
    """A heading and a table; the rows that differ are bold."""
    heads = [escaped(column.label(with_binding=section.with_bindings)) for column in section.columns]
    under = [f"{escaped(c.binding)} {escaped(c.version)}" for c in section.columns]
    lines = [
        f"### {section.op}",
        "",
        f"| | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
        f"| | {' | '.join(f'<sub>{words}</sub>' for words in under)} |",
    ]
    for row in section.rows:
        title = f"**{escaped(row.title)}**" if row.differs else escaped(row.title)
        lines.append(f"| {title} | {' | '.join(_markdown_cell(cell, row) for cell in row.cells)} |")
    return "\n".join(lines)


def _markdown_cell(cell: Cell, row: Row) -> str:
    words = escaped(cell.text)
    if cell.kind not in BEHAVIOUR:
        return f"*{words}*"
    return f"**{words}**" if row.differs else words
