"""Where `--json` writes: known to be writable before a run begins, so that no run is wasted."""

from __future__ import annotations

import os
from pathlib import Path

from ...spec.errors import NormspecError

#: The name that means standard output.
STDOUT = "-"


class UnwritableFile(NormspecError):
    """The file for the JSON report cannot be written."""


def ensure_writable(name: str) -> None:
    """Raise `UnwritableFile` unless a file of this name can be written; nothing is created."""
    if name == STDOUT:
        return
    path = Path(name)
    if path.is_dir():
        raise UnwritableFile(f"--json {name} is a folder; name a file in it, such as {path / 'report.json'}")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise UnwritableFile(f"--json {name} may not be written; name another file")
        return
    if not path.parent.is_dir():
        raise UnwritableFile(f"--json {name} has no folder to lie in; create {path.parent} first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UnwritableFile(f"--json {name} lies in a folder that may not be written; name another file")


def write(name: str, text: str) -> None:
    """Write the text to the file of this name; `UnwritableFile` if it no longer can be."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnwritableFile(f"--json {name} could not be written: {error.strerror or error}") from error
