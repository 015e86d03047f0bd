"""The scripts that `--reproduce` wrote, as text for the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Words in the head of each script. A report may name other files: nothing of these gets onto a page.
_MARK = "of normspec, edition"
_HEAD = 4096


def script_for(content: Mapping[str, Any], **wanted: Any) -> str:
    """The script of a report with these fields; empty if there is none, or if it is gone."""
    for one in content["scripts"]:
        if one["file"] and all(one[name] == value for name, value in wanted.items()):
            return _text(one["file"])
    return ""


def _text(file: str) -> str:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return text if _MARK in text[:_HEAD] else ""
