"""
The semantic table for other programs, as JSON, and for pages, as GitHub's Markdown.

The JSON is one object: "schema", "versions", "platform", "dtype", "device", "partial", "seconds", "exit_status",
"left_out" (targets without any of the operators), "differences" (how many rows), and "sections", one an operator:

    op
    columns   target, binding, framework, version of each
    rows      key (stable), title, dtype, differs, and cells in the order of the columns:
              text, kind ("measured", "raises", "unsupported", "unclear", "lost") and evidence, the numbers behind it;
              where kind is not "measured", evidence.reason says why

A float that JSON cannot write is the string "nan", "inf" or "-inf".
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from ..compare.table import BEHAVIOUR, Cell, Comparison, Row, Section
from .json_report import plain

#: Raised by one when a reader of the old form would misread the new one.
SCHEMA = 1


def comparison_to_json(comparison: Comparison) -> str:
    """The table as one JSON object, indented, ending in a newline."""
    document = {
        "schema": SCHEMA,
        "versions": {
            "normspec": version("normspec"),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "ml_dtypes": version("ml_dtypes"),
        },
        "platform": platform.platform(),
        "dtype": comparison.dtype,
        "device": comparison.device,
        "partial": comparison.partial,
        "seconds": plain(comparison.seconds),
        "exit_status": comparison.exit_status,
        "left_out": list(comparison.left_out),
        "differences": len(comparison.differences),
        "sections": [_section(section) for section in comparison.sections],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _section(section: Section) -> dict[str, Any]:
    columns = [
        {"target": c.target, "binding": c.binding, "framework": c.framework, "version": c.version}
        for c in section.columns
    ]
    return {"op": section.op, "columns": columns, "rows": [_row(row) for row in section.rows]}


def _row(row: Row) -> dict[str, Any]:
    cells = [{"text": c.text, "kind": c.kind.value, "evidence": plain(c.evidence)} for c in row.cells]
    return {"key": row.key, "title": row.title, "dtype": row.dtype, "differs": row.differs, "cells": cells}


def comparison_to_markdown(comparison: Comparison) -> str:
    """A heading and a table for each operator; the rows that differ are bold."""
    parts = [_markdown_section(section) for section in comparison.sections]
    return "\n\n".join(parts) + "\n" if parts else ""


def _markdown_section(section: Section) -> str:
    heads = [_escaped(column.label(with_binding=section.with_bindings)) for column in section.columns]
    under = [f"{_escaped(c.binding)} {_escaped(c.version)}" for c in section.columns]
    lines = [
        f"### {section.op}",
        "",
        f"| | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
        f"| | {' | '.join(f'<sub>{words}</sub>' for words in under)} |",
    ]
    for row in section.rows:
        title = f"**{_escaped(row.title)}**" if row.differs else _escaped(row.title)
        lines.append(f"| {title} | {' | '.join(_markdown_cell(cell, row) for cell in row.cells)} |")
    return "\n".join(lines)


def _markdown_cell(cell: Cell, row: Row) -> str:
    words = _escaped(cell.text)
    if cell.kind not in BEHAVIOUR:
        return f"*{words}*"
    return f"**{words}**" if row.differs else words


def _escaped(words: str) -> str:
    """The words as they are: nothing in them is read as Markdown or as HTML."""
    for letter in "\\|*_<>[]`":
        words = words.replace(letter, f"\\{letter}" if letter not in "<>" else {"<": "&lt;", ">": "&gt;"}[letter])
    return words
