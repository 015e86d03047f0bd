"""The scripts that `--reproduce` wrote, as text for the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: What stands in the head of each script. Of other files that a report may name, nothing gets onto a page.
_MARK = "of normspec, edition"
_HEAD = 4096


def script_for(content: Mapping[str, Any], **wanted: Any) -> str:
    """The script of a report whose fields are these; empty where there is none, or not any more."""
    for one in content.get("scripts", []):
        if one["file"] and all(one[name] == value for name, value in wanted.items()):
            return _text(one["file"])
    return ""


def _text(file: str) -> str:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return text if _MARK in text[:_HEAD] else ""
